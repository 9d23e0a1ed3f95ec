# Sets backdrive_isas to the x86-64 levels that the kernels are compiled for: one for the machine at hand, all three for
# packages (cmake --preset portable).
set(BACKDRIVE_ISAS native CACHE STRING "x86-64 levels the kernels are compiled for: native, or a list of v2, v3, v4")

if(BACKDRIVE_ISAS STREQUAL "native")
  if(NOT BACKDRIVE_NATIVE_ISA)
    try_run(runs compiles ${PROJECT_BINARY_DIR}/native_isa
      SOURCES ${CMAKE_CURRENT_LIST_DIR}/native_isa.cpp ${PROJECT_SOURCE_DIR}/engine/isa.cpp
      CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${PROJECT_SOURCE_DIR}"
      CXX_STANDARD 20
      COMPILE_OUTPUT_VARIABLE output
      RUN_OUTPUT_VARIABLE level)
    if(NOT compiles OR NOT runs EQUAL 0)
      message(FATAL_ERROR "BACKDRIVE_ISAS=native: the program that asks the processor does not run here; expected a list "
              "of v2, v3, v4, such as -DBACKDRIVE_ISAS=v3\n${output}${level}")
    endif()
    set(BACKDRIVE_NATIVE_ISA ${level} CACHE INTERNAL "Highest x86-64 level of this machine")
  endif()
  set(backdrive_isas ${BACKDRIVE_NATIVE_ISA})
else()
  set(backdrive_isas ${BACKDRIVE_ISAS})
  foreach(isa IN LISTS backdrive_isas)
    if(NOT isa MATCHES "^v[234]$")
      message(FATAL_ERROR "BACKDRIVE_ISAS=${BACKDRIVE_ISAS}: expected native, or a list of v2, v3, v4")
    endif()
  endforeach()
endif()
message(STATUS "Kernels for x86-64 ${backdrive_isas}")
