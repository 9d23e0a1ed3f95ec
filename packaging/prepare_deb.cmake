# Run by cpack on the tree that it is about to pack: what Debian wants of a package and an installation does not need.
cmake_minimum_required(VERSION 3.25)
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})

# cpack packs what was built: without these only simctl was.
foreach(file share/man/man1/simctl.1.gz share/bash-completion/completions/simctl share/zsh/vendor-completions/_simctl
        share/fish/vendor_completions.d/simctl.fish)
  if(NOT EXISTS ${usr}/${file})
    message(FATAL_ERROR "${file} is missing: expected a build of all targets (cmake --build) before cpack")
  endif()
endforeach()

if(NOT CPACK_BACKDRIVE_ISAS STREQUAL "v2 v3 v4")
  message(WARNING "this package is for processors with x86-64 ${CPACK_BACKDRIVE_ISAS} alone; "
          "cmake --preset portable makes one for all")
endif()

# cpack strips programs; archives keep the symbols that they are linked by. As dh_strip does it.
file(GLOB_RECURSE archives ${usr}/lib/libbackdrive_*.a)
foreach(archive IN LISTS archives)
  execute_process(COMMAND ${CPACK_BACKDRIVE_STRIP} --strip-debug --remove-section=.comment --remove-section=.note
                          --enable-deterministic-archives ${archive}
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
execute_process(COMMAND ${CPACK_BACKDRIVE_STRIP} --remove-section=.comment --remove-section=.note ${usr}/bin/simctl
                COMMAND_ERROR_IS_FATAL ANY)

# The time is that of SOURCE_DATE_EPOCH, where it is set.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(changelog ${usr}/share/doc/${CPACK_PACKAGE_NAME}/changelog)
file(WRITE ${changelog} "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Made by cpack; CHANGELOG.md says what is new.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
execute_process(COMMAND gzip -9nf ${changelog} COMMAND_ERROR_IS_FATAL ANY)
