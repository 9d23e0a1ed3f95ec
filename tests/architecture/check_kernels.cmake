# cmake -DREADELF=... -DOBJECTS=... -P check_kernels.cmake
# Objects of kernels for an instruction set, which a processor without it may be linked with and then must not run:
# nothing of theirs starts before main(), and every name that the linker may take from them for others, too, has the
# instruction set in it (namespaces v2, v3, v4).
set(found "")
if(NOT OBJECTS)
  message(FATAL_ERROR "no objects to check")
endif()
foreach(object IN LISTS OBJECTS)
  execute_process(COMMAND ${READELF} --sections --symbols --wide ${object} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  if(text MATCHES "\\.(preinit_array|init_array|ctors)")
    string(APPEND found "  ${object}: runs code before main()\n")
  endif()
  # Num: Value Size Type Bind Visibility Section Name; UND: defined elsewhere.
  string(REGEX MATCHALL "(GLOBAL|WEAK|UNIQUE) +[A-Z]+ +[0-9]+ [^\n]+" symbols "${text}")
  foreach(symbol IN LISTS symbols)
    string(REGEX REPLACE ".* " "" name "${symbol}")
    if(NOT name MATCHES "2v[234]")
      string(APPEND found "  ${object}: defines ${name} for others, too\n")
    endif()
  endforeach()
endforeach()
if(found)
  message(FATAL_ERROR "\n${found}")  # lines that begin with spaces stay whole
endif()
