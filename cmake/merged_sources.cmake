# Sources that are compiled several at once: what dozens of files would each read of the same headers, and make of the
# same templates, is read and made once. -DBACKDRIVE_MERGE=OFF compiles each by itself, which is quicker when one is
# being worked on.
option(BACKDRIVE_MERGE "Compile several sources at once" ON)

#   backdrive_merge(OUTPUT NAME COUNT SOURCES...)
# Sets OUTPUT to COUNT files NAME_0.cpp, ... of about the same size that include the SOURCES, which are relative to the
# current folder. The files hold paths from the root of the repository, so that ccache sees the same in every clone. Tests
# (*_test.cpp) may use the same names for different things: cmake/set_apart.cmake makes copies of them, beside the files,
# where compilers look first.
function(backdrive_merge output name count)
  if(NOT BACKDRIVE_MERGE)
    set(${output} ${ARGN} PARENT_SCOPE)
    return()
  endif()
  file(RELATIVE_PATH folder ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(merged ${CMAKE_CURRENT_BINARY_DIR}/merged)
  set(tests ${ARGN})
  list(FILTER tests INCLUDE REGEX "_test.cpp$")
  # The largest first, each to where there is least so far.
  set(by_size "")
  foreach(source IN LISTS ARGN)
    file(SIZE ${CMAKE_CURRENT_SOURCE_DIR}/${source} size)
    math(EXPR key "1000000 + ${size}")  # of one width, so that text sorts as numbers do
    list(APPEND by_size "${key} ${source}")
  endforeach()
  list(SORT by_size ORDER DESCENDING)
  math(EXPR last "${count} - 1")
  foreach(k RANGE ${last})
    set(total_${k} 0)
    set(text_${k} "// Made by cmake/merged_sources.cmake.\n")
  endforeach()
  foreach(entry IN LISTS by_size)
    string(REPLACE " " ";" entry "${entry}")
    list(GET entry 0 size)
    list(GET entry 1 source)
    set(least 0)
    foreach(k RANGE ${last})
      if(total_${k} LESS total_${least})
        set(least ${k})
      endif()
    endforeach()
    math(EXPR total_${least} "${total_${least}} + ${size} - 1000000")
    string(APPEND text_${least} "#include \"${folder}/${source}\"\n")
  endforeach()
  set(files "")
  foreach(k RANGE ${last})
    set(file ${merged}/${name}_${k}.cpp)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_${k}}" @ONLY)
    list(APPEND files ${file})
  endforeach()
  if(tests)
    set(copies ${tests})
    list(TRANSFORM tests PREPEND ${folder}/)
    list(TRANSFORM copies PREPEND ${merged}/${folder}/)
    set(script ${PROJECT_SOURCE_DIR}/cmake/set_apart.cmake)
    list(TRANSFORM tests PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE originals)
    add_custom_command(OUTPUT ${copies}
      COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DOUT=${merged} "-DSOURCES=${tests}" -P ${script}
      DEPENDS ${script} ${originals} COMMENT "Setting the names of tests/${name} apart" VERBATIM)
    set_source_files_properties(${files} PROPERTIES OBJECT_DEPENDS "${copies}")
  endif()
  set(${output} ${files} PARENT_SCOPE)
endfunction()
