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
    SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS "${CMAKE_SOURCE_DIR}/cmake/tagine.map")
  target_link_options(tagine_shared PRIVATE
    "LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/tagine.map")
  install(TARGETS tagine_shared LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()

foreach(mpi openmpi mpich)
  if(TARGET tagine_comm_${mpi})
    install(TARGETS tagine_comm_${mpi} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/tagine")
  endif()
endforeach()

# The paths of tagine.pc are relative to itself, so an installed tree may be moved.
file(RELATIVE_PATH TAGINE_PC_TO_INCLUDE "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig"
     "/prefix/${CMAKE_INSTALL_INCLUDEDIR}")
# The OpenMP library of the compiler, for those who link libtagine.a. clang's lies where only
# -fopenmp looks.
set(TAGINE_PC_OPENMP "-lgomp")
if(OpenMP_omp_LIBRARY)
  get_filename_component(omp_folder "${OpenMP_omp_LIBRARY}" DIRECTORY)
  set(TAGINE_PC_OPENMP "-L${omp_folder} -lomp")
endif()
configure_file(cmake/tagine.pc.in tagine.pc @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/tagine.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" OPTIONAL FILES_MATCHING PATTERN "*.h")

# Manual pages and completion come out of the program's own option tables, so they are true.
if(TARGET tagine_program AND NOT CMAKE_CROSSCOMPILING)
  set(tagine_generated "${CMAKE_BINARY_DIR}/generated")
  add_custom_command(OUTPUT "${tagine_generated}/stamp" DEPENDS tagine_program VERBATIM
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${tagine_generated}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${tagine_generated}"
    COMMAND tagine_program man --all "${tagine_generated}/man1"
    COMMAND tagine_program completion bash > "${tagine_generated}/tagine.bash"
    COMMAND tagine_program completion zsh > "${tagine_generated}/_tagine"
    COMMAND tagine_program completion fish > "${tagine_generated}/tagine.fish"
    COMMAND "${CMAKE_COMMAND}" -E touch "${tagine_generated}/stamp"
    COMMENT "Manual pages and shell completion")
  add_custom_target(tagine_manuals ALL DEPENDS "${tagine_generated}/stamp")
  install(DIRECTORY "${tagine_generated}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}")
  install(FILES "${tagine_generated}/tagine.bash" RENAME tagine
          DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES "${tagine_generated}/_tagine" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES "${tagine_generated}/tagine.fish"
          DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
install(DIRECTORY data/ DESTINATION "${CMAKE_INSTALL_DATADIR}/tagine" OPTIONAL)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
