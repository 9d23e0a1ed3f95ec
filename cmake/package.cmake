# The installed package: find_package(backdrive) gives backdrive::backdrive (everything) and one target per folder.
include(CMakePackageConfigHelpers)
add_library(backdrive INTERFACE)
add_library(backdrive::backdrive ALIAS backdrive)
target_link_libraries(backdrive INTERFACE backdrive_engine backdrive_models backdrive_integrators backdrive_autodiff
                      backdrive_scenes)
install(TARGETS backdrive EXPORT backdrive-targets)
# All but what only the build's own definitions make a header of, and what needs Eigen, which consumers do not.
install(CODE "
  set(ROOT \"${PROJECT_SOURCE_DIR}\")
  set(BINARY \"${PROJECT_BINARY_DIR}/include\")
  set(FOLDERS engine models integrators autodiff scenes)
  set(KEPT_BACK integrators/rollout/instance.h integrators/contact/point_instances.h
      integrators/reference/link_motion.h autodiff/optimize/lbfgs.h)
  set(INTO \"${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake)
install(EXPORT backdrive-targets NAMESPACE backdrive:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/backdrive)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/backdrive-config.cmake.in
  ${PROJECT_BINARY_DIR}/backdrive-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/backdrive
  PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/backdrive-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/backdrive-config.cmake ${PROJECT_BINARY_DIR}/backdrive-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/backdrive)

# What is to be read: laid out as in the repository, so that links hold.
set(root ${PROJECT_SOURCE_DIR})
install(FILES ${root}/README.md ${root}/CHANGELOG.md ${root}/SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md"
        PATTERN "*.png")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
# The notices of everything that is in the binaries.
set(backdrive_copyright_of_cuda "")
if(backdrive_cuda)
  get_filename_component(toolkit ${CMAKE_CUDA_COMPILER} DIRECTORY)
  find_file(cuda_licence NAMES License.txt EULA.txt PATHS ${toolkit}/.. NO_DEFAULT_PATH NO_CACHE)
  if(cuda_licence)
    install(FILES ${cuda_licence} DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME NVIDIA-CUDA-licence.txt)
  endif()
  file(READ ${PROJECT_SOURCE_DIR}/packaging/copyright-cuda backdrive_copyright_of_cuda)
endif()
configure_file(${PROJECT_SOURCE_DIR}/packaging/copyright.in ${PROJECT_BINARY_DIR}/copyright @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR})
