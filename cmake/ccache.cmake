# ccache, where it is installed: g++, clang++ and nvcc compile nothing twice, in whatever folder or clone it was compiled
# first. -DBACKDRIVE_CCACHE=OFF does without; launchers that were named by hand stay.
option(BACKDRIVE_CCACHE "Compile through ccache where it is installed" ON)
set(BACKDRIVE_LAUNCHER "" CACHE STRING "What compilers and ccache are called through: a timer, say")
find_program(BACKDRIVE_CCACHE_PROGRAM ccache)
mark_as_advanced(BACKDRIVE_CCACHE_PROGRAM)

set(launcher ${BACKDRIVE_LAUNCHER})
if(BACKDRIVE_CCACHE AND BACKDRIVE_CCACHE_PROGRAM)
  # Paths below the source are hashed as they are seen from the build folder, so that clones share.
  list(APPEND launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
       ${BACKDRIVE_CCACHE_PROGRAM})
endif()
if(launcher AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()
