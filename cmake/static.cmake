# BACKDRIVE_STATIC: programs that run where nothing is installed but glibc; scripts/gpu-check takes such ones to GPUs.
# glibc stays shared, because CUDA's driver is a library of the machine that has the GPU: it is loaded with dlopen and
# needs that machine's glibc, beside which a second one linked in would not work. scripts/gpu-check --bundle says from
# which version on. Debian 12's own, 2.36, would shut out Ubuntu 22.04: what asks for it is a random_device that nobody
# calls, which --gc-sections leaves out; what is left asks for 2.35.
option(BACKDRIVE_STATIC "Link all libraries but glibc into the programs" OFF)
if(BACKDRIVE_STATIC)
  add_link_options(-static-libstdc++ -static-libgcc -Wl,--gc-sections)
endif()

#   backdrive_prefer_archive(yaml-cpp)
# Has an imported shared library replaced with the lib<target>.a of the same package: Debian's CMake files know only of
# the former. Called in the directory of find_package().
function(backdrive_prefer_archive target)
  get_target_property(type ${target} TYPE)
  if(NOT BACKDRIVE_STATIC OR NOT type STREQUAL "SHARED_LIBRARY")
    return()
  endif()
  find_library(archive lib${target}.a NO_CACHE REQUIRED)
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_${configuration} ${archive})
  endforeach()
endfunction()
