# cmake -DSIMCTL=... -DDIRECTORY=... -P write_texts.cmake
# What simctl prints of itself, in files; the man page as man pages are installed.
file(MAKE_DIRECTORY ${DIRECTORY})
foreach(shell bash zsh fish)
  execute_process(COMMAND ${SIMCTL} completion ${shell} OUTPUT_FILE ${DIRECTORY}/simctl.${shell}
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
# -n: no time of the build in it.
execute_process(COMMAND ${SIMCTL} manual COMMAND gzip -9n OUTPUT_FILE ${DIRECTORY}/simctl.1.gz
                COMMAND_ERROR_IS_FATAL ANY)
