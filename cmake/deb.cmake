# cpack: a Debian package of everything that is installed, for machines without a compiler. scripts/prove-package tries
# it on a bare Debian. Needs dpkg-dev, which finds the packages of the shared libraries that simctl is linked with.
if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(BACKDRIVE_MAINTAINER "Backdrive maintainers <maintainers@backdrive.invalid>" CACHE STRING
    "Who packages name as their maintainer")

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME backdrive)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "${BACKDRIVE_MAINTAINER}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "differentiable articulated-body physics with gradients one can trust")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Backdrive simulates many articulated bodies at once, with contact and closed
loops, and gives the exact gradient of a motion with respect to its initial
state, its controls and every parameter of the model.
.
This package holds the program simctl, which simulates, optimises and checks
scenes written in YAML, scenes to begin with, the C++ libraries with their
headers, and a CMake package, backdrive.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
    WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/prepare_deb.cmake)
# For that script.
set(CPACK_BACKDRIVE_STRIP ${CMAKE_STRIP})
list(JOIN backdrive_isas " " CPACK_BACKDRIVE_ISAS)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)  # backdrive_0.1.0_amd64.deb
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_THREADS 0)  # all: compressing takes longest
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# What backdrive-config.cmake looks for, and what builds with it: of use to developers only.
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "cmake, g++, libpugixml-dev, libqhull-dev, libyaml-cpp-dev")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
