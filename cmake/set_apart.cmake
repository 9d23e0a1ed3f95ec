# cmake -DROOT=<repository> -DOUT=<folder> "-DSOURCES=<path from ROOT>;..." -P set_apart.cmake
# Copies sources to OUT so that several can be compiled as one though each has its own idea of a name: what stands in an
# anonymous namespace there stands in one of the file's name as well. Compilers tell of the lines of the sources.
cmake_minimum_required(VERSION 3.25)
foreach(source IN LISTS SOURCES)
  file(READ ${ROOT}/${source} text)
  get_filename_component(name ${source} NAME_WE)
  string(REPLACE "\nnamespace {\n" "\nnamespace ${name} { namespace {\n" apart "${text}")
  string(REPLACE "\n}  // namespace\n" "\n}}  // namespace\n" apart "${apart}")
  if(apart STREQUAL text)
    message(FATAL_ERROR "${source}: expected its tests in an anonymous namespace")
  endif()
  set(apart "#line 1 \"${source}\"\n${apart}")
  set(before "")
  if(EXISTS ${OUT}/${source})
    file(READ ${OUT}/${source} before)
  endif()
  # What has not changed keeps its time, so that it is not compiled again.
  if(NOT before STREQUAL apart)
    file(WRITE ${OUT}/${source} "${apart}")
  endif()
endforeach()
