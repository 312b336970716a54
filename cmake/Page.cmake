# The page of report.html in one file: tagine_page(<out variable> <folder> <scripts in order>) gives the path of
# report.html with @style@ and @script@ filled in from report.css and the scripts, made again whenever one of them
# changes. Run as a script (cmake -P) it makes the file.
if(CMAKE_SCRIPT_MODE_FILE)
  cmake_minimum_required(VERSION 3.25)
  file(READ "${FOLDER}/report.html" page)
  file(READ "${FOLDER}/report.css" style)
  set(script "")
  string(REPLACE "," ";" names "${SCRIPTS}")
  foreach(name IN LISTS names)
    file(READ "${FOLDER}/${name}" text)
    string(APPEND script "${text}\n")
  endforeach()
  string(REPLACE "@style@" "${style}" page "${page}")
  string(REPLACE "@script@" "${script}" page "${page}")
  file(WRITE "${OUTPUT}" "${page}")
  return()
endif()

set(TAGINE_PAGE_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
function(tagine_page out folder)
  set(output "${CMAKE_BINARY_DIR}/embedded/report.html")
  set(sources "${folder}/report.html" "${folder}/report.css")
  foreach(name IN LISTS ARGN)
    list(APPEND sources "${folder}/${name}")
  endforeach()
  string(REPLACE ";" "," scripts "${ARGN}")
  add_custom_command(OUTPUT "${output}" DEPENDS ${sources} "${TAGINE_PAGE_SCRIPT}"
    COMMAND "${CMAKE_COMMAND}" "-DFOLDER=${folder}" "-DSCRIPTS=${scripts}" "-DOUTPUT=${output}"
            -P "${TAGINE_PAGE_SCRIPT}"
    COMMENT "Putting report.html together" VERBATIM)
  set(${out} "${output}" PARENT_SCOPE)
endfunction()
