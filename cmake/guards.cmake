# Sets backdrive_guards to what BACKDRIVE_GUARDS is defined as, 1 or 0: engine/generation.h says what it switches.
#
# It decides the layout of public types, so it travels with the package: whoever links the libraries gets the value that
# they were built with, not the one that his own build type would choose. A package can say only one: generators that
# build several configurations at once take AUTO for OFF.
set(BACKDRIVE_GUARDS AUTO CACHE STRING "Catch stale views: ON, OFF, or AUTO (on in builds without NDEBUG)")
set_property(CACHE BACKDRIVE_GUARDS PROPERTY STRINGS AUTO ON OFF)

string(TOUPPER "${BACKDRIVE_GUARDS}" choice)
set(backdrive_guards 0)
if(choice STREQUAL "AUTO")
  string(TOUPPER "${CMAKE_BUILD_TYPE}" upper)
  if(NOT CMAKE_CONFIGURATION_TYPES AND NOT "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${upper}}" MATCHES "-DNDEBUG")
    set(backdrive_guards 1)
  endif()
elseif(BACKDRIVE_GUARDS)
  set(backdrive_guards 1)
endif()
