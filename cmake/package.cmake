# The installed package: find_package(backdrive) gives backdrive::backdrive (everything) and one target per folder.
include(CMakePackageConfigHelpers)
add_library(backdrive INTERFACE)
add_library(backdrive::backdrive ALIAS backdrive)
target_link_libraries(backdrive INTERFACE backdrive_engine backdrive_models backdrive_integrators backdrive_autodiff
                      backdrive_scenes)
install(TARGETS backdrive EXPORT backdrive-targets)
install(FILES ${PROJECT_SOURCE_DIR}/backdrive.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/backdrive)
install(EXPORT backdrive-targets NAMESPACE backdrive:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/backdrive)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/backdrive-config.cmake.in
  ${PROJECT_BINARY_DIR}/backdrive-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/backdrive
  PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/backdrive-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/backdrive-config.cmake ${PROJECT_BINARY_DIR}/backdrive-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/backdrive)
