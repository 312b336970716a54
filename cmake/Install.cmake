# cmake --install: the program, libtagine (static and shared) with its pkg-config file and public
# headers, man pages, shell completion and the nutrition table.
include(GNUInstallDirs)

if(TARGET tagine_program)
  install(TARGETS tagine_program RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
install(TARGETS tagine ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(NOT TAGINE_SANITIZE)
  get_target_property(tagine_libraries tagine LINK_LIBRARIES)
  add_library(tagine_shared SHARED ${tagine_object_files})
  target_link_libraries(tagine_shared PRIVATE ${tagine_libraries})
  set_target_properties(tagine_shared PROPERTIES OUTPUT_NAME tagine VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR})
  install(TARGETS tagine_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

# The paths of tagine.pc are relative to itself, so an installed tree may be moved.
file(RELATIVE_PATH TAGINE_PC_TO_INCLUDE "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig"
     "/prefix/${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/tagine.pc.in tagine.pc @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/tagine.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" OPTIONAL FILES_MATCHING PATTERN "*.h")

install(DIRECTORY man/ DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" OPTIONAL FILES_MATCHING PATTERN "*.1")
install(FILES completion/tagine.bash DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
        RENAME tagine OPTIONAL)
install(FILES completion/_tagine DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" OPTIONAL)
install(FILES completion/tagine.fish DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
        OPTIONAL)
install(DIRECTORY data/ DESTINATION "${CMAKE_INSTALL_DATADIR}/tagine" OPTIONAL)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
