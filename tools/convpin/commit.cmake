# Writes commit.hpp, which convpin --version says: the commit that is built, and whether the tree was as committed. Empty
# where SOURCE is no git checkout of its own. Run at each build; the file changes where the commit does.
cmake_minimum_required(VERSION 3.25)
set(commit "")
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(top STREQUAL SOURCE)
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=7 --exclude=*
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define CONVPIN_COMMIT \"@commit@\"\n" @ONLY)
