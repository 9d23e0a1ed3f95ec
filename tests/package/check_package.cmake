# cmake -DBINARY_DIR= -DSOURCE_DIR= -DWORK_DIR= ... -P check_package.cmake
# Install, find_package(backdrive), build, run; then the same with the prefix moved elsewhere.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT result EQUAL 0)
    list(JOIN ARGN " " words)
    message(FATAL_ERROR "${words}\n${output}\nexit ${result}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
run(${CMAKE_COMMAND} --install ${BINARY_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/installed)
# A package works where it is put, not only where it was installed.
file(RENAME ${WORK_DIR}/installed ${WORK_DIR}/moved)
# The sources of the example alone, so that no header of the repository is within reach.
file(COPY ${SOURCE_DIR}/examples/pendulum DESTINATION ${WORK_DIR})

# The guards decide the layout of public types, CUDA what there is to call: the package says what it was built with,
# whatever the consumer's build type, so the consumer's is the other one.
file(GLOB targets ${WORK_DIR}/moved/lib*/cmake/backdrive/backdrive-targets.cmake
     ${WORK_DIR}/moved/lib*/*/cmake/backdrive/backdrive-targets.cmake)
file(READ "${targets}" exported)
if(NOT exported MATCHES "BACKDRIVE_GUARDS=${GUARDS}[;\"]")
  message(FATAL_ERROR "${targets} does not export BACKDRIVE_GUARDS=${GUARDS}:\n${exported}")
endif()
file(READ ${WORK_DIR}/moved/include/backdrive/engine/built_devices.h built)
if(NOT built MATCHES "BACKDRIVE_HAS_CUDA ${CUDA}\n")
  message(FATAL_ERROR "the installed built_devices.h does not say BACKDRIVE_HAS_CUDA ${CUDA}:\n${built}")
endif()
if(CONFIG STREQUAL "Debug")
  set(other Release)
else()
  set(other Debug)
endif()

# A project with files of its own that have the names of ours.
if(SANITIZE)
  set(hostile "")
else()
  run(${CMAKE_COMMAND} -DINCLUDE=${WORK_DIR}/moved/include -DWORK_DIR=${WORK_DIR}/headers -DCXX=${CXX}
      "-DCXX_FLAGS=${CXX_FLAGS}" "-DLAUNCHER=${LAUNCHER}" -DDEFINITIONS=-DBACKDRIVE_GUARDS=${GUARDS}
      -P ${CMAKE_CURRENT_LIST_DIR}/check_headers.cmake)
  set(hostile " -I${WORK_DIR}/headers/hostile")
endif()

set(flags "${CXX_FLAGS}${hostile}")
if(SANITIZE)
  string(APPEND flags " -fsanitize=${SANITIZE}")
endif()
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${WORK_DIR}/pendulum -B ${WORK_DIR}/build -DCMAKE_PREFIX_PATH=${WORK_DIR}/moved
    -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=${flags}" -DCMAKE_BUILD_TYPE=${other})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build)
run(${WORK_DIR}/build/pendulum)
message(STATUS "${output}")
if(NOT output MATCHES "at the end: angle")
  message(FATAL_ERROR "the example printed something else:\n${output}")
endif()

# The installed program runs, too.
run(${WORK_DIR}/moved/bin/simctl info --json)
# So do its scenes, with the files that they read.
file(GLOB scenes ${WORK_DIR}/moved/share/backdrive/scenes/*.yaml)
if(NOT scenes)
  message(FATAL_ERROR "the package has no scenes")
endif()
foreach(scene IN LISTS scenes)
  run(${WORK_DIR}/moved/bin/simctl validate ${scene})
endforeach()

# A package that names a folder of this machine works on no other.
file(GLOB_RECURSE configs ${WORK_DIR}/moved/*.cmake)
foreach(config IN LISTS configs)
  file(READ ${config} text)
  foreach(folder ${SOURCE_DIR} ${BINARY_DIR})
    string(FIND "${text}" "${folder}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${config} names ${folder}")
    endif()
  endforeach()
endforeach()
