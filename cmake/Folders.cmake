# One object library per folder of src/, in the order of docs/ARCHITECTURE.md; all but cli/ make up
# libtagine. A new .c file in a folder is picked up by itself. Link lines name which outside library
# a folder may use; tests/shape checks the includes.
set(TAGINE_FOLDERS base os trace tensor dev kern image data model loss comm optim ckpt run monitor
    profile diagnose report train infer)

# Files named *_avx2.c, *_avx512.c, *_avx512bf16.c, *_amx.c are compiled for that instruction set and
# reached only through run-time detection.
function(tagine_isa_flags)
  foreach(file IN LISTS ARGN)
    if(file MATCHES "_avx2\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c;-O3")
    elseif(file MATCHES "_avx512\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
        "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mprefer-vector-width=512;-O3")
    elseif(file MATCHES "_avx512bf16\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
        "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512bf16;-mprefer-vector-width=512;-O3")
    elseif(file MATCHES "_amx\\.c$")
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS
        "-mavx2;-mfma;-mf16c;-mavx512f;-mavx512bw;-mavx512dq;-mavx512vl;-mavx512bf16;-mamx-tile;-mamx-bf16;-mamx-int8;-mprefer-vector-width=512;-O3")
    endif()
  endforeach()
endfunction()

add_library(tagine_objects INTERFACE)
set(tagine_object_files)
foreach(folder IN LISTS TAGINE_FOLDERS)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${folder}/*.c")
  list(FILTER sources EXCLUDE REGEX "/comm/mpi/")
  if(NOT sources)
    continue()
  endif()
  tagine_isa_flags(${sources})
  add_library(tagine_${folder} OBJECT ${sources})
  target_include_directories(tagine_${folder} PRIVATE "${CMAKE_SOURCE_DIR}/src"
                             "${CMAKE_SOURCE_DIR}/include")
  target_link_libraries(tagine_${folder} PRIVATE tagine_flags)
  list(APPEND tagine_object_files $<TARGET_OBJECTS:tagine_${folder}>)
endforeach()

# Outside libraries, folder by folder.
function(tagine_uses folder)
  if(TARGET tagine_${folder})
    target_link_libraries(tagine_${folder} PRIVATE ${ARGN})
  endif()
endfunction()
tagine_uses(base PkgConfig::JANSSON PkgConfig::YAML)
tagine_uses(os Threads::Threads)
tagine_uses(trace Threads::Threads ZLIB::ZLIB)
tagine_uses(dev OpenMP::OpenMP_C DNNL::dnnl)
tagine_uses(kern OpenMP::OpenMP_C DNNL::dnnl)
tagine_uses(image JPEG::JPEG PkgConfig::SPNG PkgConfig::WEBP PkgConfig::HEIF)
tagine_uses(data Threads::Threads)

include(cmake/Embed.cmake)
tagine_embed(nutrition_table "${CMAKE_SOURCE_DIR}/data/nutrition.csv" tg_nutrition_table
             "infer/nutrition_table.h")
target_sources(tagine_infer PRIVATE "${nutrition_table}")

include(cmake/Page.cmake)
tagine_page(report_page "${CMAKE_SOURCE_DIR}/src/report/page" text.js view.js canvas.js gestures.js lines.js
            heat.js bars.js table.js summary.js training.js machines.js ranks.js check.js main.js)
tagine_embed(report_page_source "${report_page}" tg_html_page "report/html_page.h")
target_sources(tagine_report PRIVATE "${report_page_source}")

add_library(tagine STATIC ${tagine_object_files})
target_include_directories(tagine PUBLIC "${CMAKE_SOURCE_DIR}/src" "${CMAKE_SOURCE_DIR}/include")
target_link_libraries(tagine PUBLIC OpenMP::OpenMP_C DNNL::dnnl JPEG::JPEG PkgConfig::SPNG
  PkgConfig::WEBP PkgConfig::HEIF PkgConfig::YAML PkgConfig::JANSSON ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS} m)
if(TAGINE_SANITIZE)
  target_link_options(tagine PUBLIC -fsanitize=${TAGINE_SANITIZE})
endif()

# Modules that the program opens when a job has other ranks: one for each MPI that is installed. They
# use nothing of ours, and may be built by any compiler; sanitizers do not reach into MPI.
function(tagine_mpi_module name package)
  pkg_check_modules(MPI_${name} IMPORTED_TARGET ${package})
  if(NOT MPI_${name}_FOUND)
    message(STATUS "no ${package}: the module for ${name} is not built")
    return()
  endif()
  add_library(tagine_comm_${name} MODULE src/comm/mpi/mpi.c)
  set_target_properties(tagine_comm_${name} PROPERTIES PREFIX "" OUTPUT_NAME tagine-comm-${name})
  target_include_directories(tagine_comm_${name} PRIVATE "${CMAKE_SOURCE_DIR}/src")
  target_compile_options(tagine_comm_${name} PRIVATE -Wall -Wextra -Wshadow -Werror)
  target_link_libraries(tagine_comm_${name} PRIVATE PkgConfig::MPI_${name})
endfunction()
tagine_mpi_module(openmpi ompi-c)
tagine_mpi_module(mpich mpich)

# The program is main.c on top of the other files of cli/, which tests/cli can link too.
file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/cli/*.c")
list(FILTER cli_sources EXCLUDE REGEX "/main\\.c$")
if(cli_sources)
  add_library(tagine_cli STATIC ${cli_sources})
  target_link_libraries(tagine_cli PRIVATE tagine_flags PUBLIC tagine)
  include(GNUInstallDirs)
  file(RELATIVE_PATH module_folder "/prefix/${CMAKE_INSTALL_BINDIR}"
       "/prefix/${CMAKE_INSTALL_LIBDIR}/tagine")
  set_source_files_properties(src/cli/options_parallel.c PROPERTIES COMPILE_DEFINITIONS
    "TG_MODULE_FOLDER=\"${module_folder}\"")
  add_executable(tagine_program src/cli/main.c)
  set_target_properties(tagine_program PROPERTIES OUTPUT_NAME tagine)
  target_link_libraries(tagine_program PRIVATE tagine_flags tagine_cli)
endif()
