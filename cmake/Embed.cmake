# A file as bytes in the program: tagine_embed(<out variable> <input> <symbol> <header>) gives the
# path of a C file that defines `const unsigned char SYMBOL[]` and `const size_t SYMBOL_bytes`, made
# again whenever the input changes. Run as a script (cmake -P) it makes the file.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)"
         "\\1\n    " bytes "${bytes}")
  file(WRITE "${OUTPUT}" "#include \"${HEADER}\"\n\nconst unsigned char ${SYMBOL}[] = {\n    ${bytes}\n};\n"
       "const size_t ${SYMBOL}_bytes = sizeof ${SYMBOL};\n")
  return()
endif()

set(TAGINE_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")
function(tagine_embed out input symbol header)
  set(output "${CMAKE_BINARY_DIR}/embedded/${symbol}.c")
  add_custom_command(OUTPUT "${output}" DEPENDS "${input}" "${TAGINE_EMBED_SCRIPT}"
    COMMAND "${CMAKE_COMMAND}" "-DINPUT=${input}" "-DOUTPUT=${output}" "-DSYMBOL=${symbol}"
            "-DHEADER=${header}" -P "${TAGINE_EMBED_SCRIPT}"
    COMMENT "Embedding ${input}" VERBATIM)
  set(${out} "${output}" PARENT_SCOPE)
endfunction()
