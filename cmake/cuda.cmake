# CUDA: whether it is compiled, with what, and backdrive_cuda_sources(). Sets backdrive_cuda to 1 or 0, which is what
# BACKDRIVE_HAS_CUDA is defined as; it travels with the package, as the guards do. docs/gpu.md describes the options.
set(BACKDRIVE_CUDA AUTO CACHE STRING
    "Compile the CUDA kernels: ON, OFF, or AUTO (where there are a GPU and an nvcc that works)")
set_property(CACHE BACKDRIVE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(BACKDRIVE_CUDA_ARCHITECTURES 90 CACHE STRING "As in CMAKE_CUDA_ARCHITECTURES, or all: those that packages carry")
option(BACKDRIVE_CUDA_PTXAS_INFO "Registers and spills of every kernel among the compiler's output" OFF)

string(TOUPPER "${BACKDRIVE_CUDA}" backdrive_cuda_choice)
if(NOT backdrive_cuda_choice MATCHES "^(AUTO|ON|OFF|TRUE|FALSE|YES|NO|1|0)$")
  message(FATAL_ERROR "BACKDRIVE_CUDA=${BACKDRIVE_CUDA}: expected AUTO, ON or OFF")
endif()
if(NOT BACKDRIVE_CUDA_ARCHITECTURES MATCHES "^(all|native|[0-9]+a?(-real|-virtual)?(;[0-9]+a?(-real|-virtual)?)*)$")
  message(FATAL_ERROR "BACKDRIVE_CUDA_ARCHITECTURES=${BACKDRIVE_CUDA_ARCHITECTURES}: "
          "expected all, native, or a list such as 80-real;90")
endif()

# Sets backdrive_nvcc; or backdrive_no_cuda to the reason why there is none.
function(backdrive_find_nvcc)
  set(toolkit ${PROJECT_SOURCE_DIR}/build/cuda-toolkit/bin)  # of scripts/setup --cuda
  # A toolkit that appears later makes the next build configure anew, so that ./simctl finds it by itself.
  file(GLOB appeared CONFIGURE_DEPENDS ${toolkit}/nvcc /usr/local/cuda/bin/nvcc)
  if(CMAKE_CUDA_COMPILER)
    find_program(nvcc ${CMAKE_CUDA_COMPILER} NO_CACHE)
    if(NOT nvcc)
      # Nothing else is tried: CMake cannot change the compiler of a build folder.
      message(FATAL_ERROR "CMAKE_CUDA_COMPILER=${CMAKE_CUDA_COMPILER} is not there: expected nvcc. "
              "If it was removed: cmake --fresh with the same options")
    endif()
  elseif(DEFINED ENV{CUDACXX})
    find_program(nvcc $ENV{CUDACXX} NO_CACHE)
  else()
    # The toolkit made for this very folder comes first: that of the distribution is often too old.
    find_program(nvcc nvcc HINTS ${toolkit} PATHS /usr/local/cuda/bin NO_CACHE)
  endif()
  if(NOT nvcc)
    set(backdrive_no_cuda "no nvcc in ${toolkit}, PATH or /usr/local/cuda/bin" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT output MATCHES "V([0-9]+\\.[0-9]+\\.[0-9]+)")
    set(backdrive_no_cuda "${nvcc} --version says no version" PARENT_SCOPE)
  elseif(CMAKE_MATCH_1 VERSION_LESS 12.8)  # the first that knows all of the architectures below
    set(backdrive_no_cuda "${nvcc} is ${CMAKE_MATCH_1}, and 12.8 or later is needed" PARENT_SCOPE)
  endif()
  set(backdrive_nvcc ${nvcc} PARENT_SCOPE)
endfunction()

set(backdrive_no_cuda "")
set(backdrive_cuda_advice "")
if(NOT backdrive_cuda_choice STREQUAL "AUTO" AND NOT BACKDRIVE_CUDA)
  set(backdrive_no_cuda "BACKDRIVE_CUDA=${BACKDRIVE_CUDA}")
elseif(backdrive_cuda_choice STREQUAL "AUTO" AND NOT EXISTS /dev/nvidiactl AND NOT EXISTS /dev/dxg)  # dxg: WSL's
  set(backdrive_no_cuda "no GPU is here; -DBACKDRIVE_CUDA=ON, or ./simctl --cuda, compiles for one elsewhere")
elseif(BACKDRIVE_SANITIZE)
  set(backdrive_no_cuda "builds with BACKDRIVE_SANITIZE have none")  # the driver and the sanitizers fight over memory
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(backdrive_no_cuda "only builds with g++ have it, this is ${CMAKE_CXX_COMPILER_ID}")
else()
  backdrive_find_nvcc()
  string(CONCAT backdrive_cuda_advice "\nscripts/setup --cuda puts a CUDA toolkit into build/cuda-toolkit; "
         "-DCMAKE_CUDA_COMPILER=.../bin/nvcc names another one.")
endif()
# The same compiler for host code, so that functions of headers come out of both to the same bits.
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
# check_language() would pass over a compiler that is named already, so it is asked once per build folder, by CUDACXX.
if(NOT backdrive_no_cuda AND NOT EXISTS ${CMAKE_BINARY_DIR}/CMakeFiles/${CMAKE_VERSION}/CMakeCUDACompiler.cmake)
  include(CheckLanguage)
  unset(CMAKE_CUDA_COMPILER CACHE)
  set(ENV{CUDACXX} ${backdrive_nvcc})
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # the next configuration asks again
    string(CONCAT backdrive_no_cuda "${backdrive_nvcc} cannot compile with ${CMAKE_CXX_COMPILER} "
           "(${CMAKE_BINARY_DIR}/CMakeFiles/CMakeError.log)")
  endif()
endif()

if(backdrive_no_cuda)
  set(backdrive_cuda 0)
  set(BACKDRIVE_CUDA_STATE "off: ${backdrive_no_cuda}" CACHE INTERNAL "What became of BACKDRIVE_CUDA")
  if(BACKDRIVE_CUDA AND NOT backdrive_cuda_choice STREQUAL "AUTO")
    message(FATAL_ERROR "BACKDRIVE_CUDA=${BACKDRIVE_CUDA}, but ${backdrive_no_cuda}.${backdrive_cuda_advice}")
  endif()
  message(STATUS "CUDA ${BACKDRIVE_CUDA_STATE}")
else()
  set(backdrive_cuda 1)
  if(BACKDRIVE_CUDA_ARCHITECTURES STREQUAL "all")
    # 120 alone stands for machine code and PTX, which later ones compile for themselves.
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 86-real 89-real 90-real 100-real 120)
  else()
    set(CMAKE_CUDA_ARCHITECTURES ${BACKDRIVE_CUDA_ARCHITECTURES})
  endif()
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # finds the driver when it is first called: programs start without one
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 knows of no nvcc with C++20
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(BACKDRIVE_CUDA_STATE
      "on: nvcc ${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER}), architectures ${CMAKE_CUDA_ARCHITECTURES}"
      CACHE INTERNAL "What became of BACKDRIVE_CUDA")
  message(STATUS "CUDA ${BACKDRIVE_CUDA_STATE}")

  # What backdrive_options is for C++. The three -f are what the C++ build has, by option or by its GNU mode: functions
  # of headers that both compile must be the same whichever of the two the linker keeps.
  add_library(backdrive_cuda_options INTERFACE)
  set(options
    $<$<BOOL:${BACKDRIVE_WERROR}>:-Werror=all-warnings>
    -Xcompiler=-Wall,-Wextra,$<$<BOOL:${BACKDRIVE_WERROR}>:-Werror,>-Wno-restrict,-fno-math-errno,-fno-trapping-math,-ffp-contract=fast
    --expt-relaxed-constexpr --extended-lambda -lineinfo
    $<$<BOOL:${BACKDRIVE_CUDA_PTXAS_INFO}>:--ptxas-options=-v>)
  target_compile_options(backdrive_cuda_options INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:${options}>")

  # The static runtime. find_package(CUDAToolkit) would do, but that of CMake 3.25 fails on a CUDA without nvToolsExt.
  # The package carries it along, so that who uses that needs no toolkit (NVIDIA's licence allows it);
  # cmake/backdrive-config.cmake.in makes the same target of it there.
  find_library(cudart_static libcudart_static.a PATHS ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES} NO_DEFAULT_PATH NO_CACHE
               REQUIRED)
  add_library(backdrive::cudart_static STATIC IMPORTED GLOBAL)
  set_target_properties(backdrive::cudart_static PROPERTIES
    IMPORTED_LOCATION ${cudart_static}
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};rt")
  install(FILES ${cudart_static} DESTINATION ${CMAKE_INSTALL_LIBDIR}/backdrive)
endif()

#   backdrive_cuda_sources(TARGET FILES...)
# Adds .cu files to a target, which is a static library as a rule, when CUDA is on; does nothing otherwise.
function(backdrive_cuda_sources target)
  if(NOT backdrive_cuda)
    return()
  endif()
  target_sources(${target} PRIVATE ${ARGN})
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:backdrive_cuda_options> backdrive::cudart_static)
endfunction()

#   backdrive_cuda_instances(TARGET FILE DEFINITIONS...)
# The same of one file that is compiled several times, each time with other definitions.
function(backdrive_cuda_instances target file)
  if(NOT backdrive_cuda)
    return()
  endif()
  string(REGEX REPLACE "BACKDRIVE_[A-Z_]+=" "" name "${file} ${ARGN}")
  string(MAKE_C_IDENTIFIER "${name}" name)
  add_library(${name} OBJECT ${file})
  target_compile_definitions(${name} PRIVATE ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/include)
  target_link_libraries(${name} PRIVATE backdrive_options backdrive_cuda_options backdrive::cudart_static)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${name}>)
endfunction()
