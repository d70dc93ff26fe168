# How Hutch's parts are built. Each library comes twice: NAME against the system's libc, for tests and for programs with
# other libraries, and NAME-musl for the static programs, which start in a tenth of the time (glibc asks the CPU for its
# features at each start; in a virtual machine every such question is a trap).

set(HUTCH_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wswitch-enum
    -Wformat=2 -Werror)
set(HUTCH_HARDENING -fstack-protector-strong -fstack-clash-protection -fPIE)
set(HUTCH_DEFINITIONS _GNU_SOURCE HUTCH_VERSION="${PROJECT_VERSION}"
    HUTCH_LIBEXEC="${CMAKE_INSTALL_FULL_LIBEXECDIR}/hutch")
set(HUTCH_GENERATED ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${HUTCH_GENERATED})

execute_process(COMMAND ${CMAKE_C_COMPILER} -dumpmachine OUTPUT_VARIABLE machine OUTPUT_STRIP_TRAILING_WHITESPACE)
string(REGEX REPLACE "-.*" "" machine ${machine})
set(MUSL_LIB /usr/lib/${machine}-linux-musl)
set(MUSL_COMPILE -specs=${MUSL_LIB}/musl-gcc.specs "SHELL:-idirafter /usr/include"
    "SHELL:-idirafter /usr/include/${machine}-linux-gnu")
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=crtbeginS.o OUTPUT_VARIABLE CRT_BEGIN
    OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=crtendS.o OUTPUT_VARIABLE CRT_END
    OUTPUT_STRIP_TRAILING_WHITESPACE)

function(hutch_flags target)
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${HUTCH_GENERATED})
    target_compile_definitions(${target} PRIVATE ${HUTCH_DEFINITIONS})
    target_compile_options(${target} PRIVATE ${HUTCH_WARNINGS} ${HUTCH_HARDENING})
    if(HUTCH_SANITIZE)
        target_compile_definitions(${target} PRIVATE HUTCH_SANITIZED)
    endif()
endfunction()

# Against the system's libc, with the sanitizers of the preset.
function(hutch_flags_system target)
    hutch_flags(${target})
    if(HUTCH_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=${HUTCH_SANITIZE} -fno-sanitize-recover=all
            -fno-omit-frame-pointer)
        target_link_options(${target} PRIVATE -fsanitize=${HUTCH_SANITIZE})
    elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
        target_compile_options(${target} PRIVATE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
    endif()
    target_link_options(${target} PRIVATE -pie -Wl,-z,relro,-z,now)
endfunction()

# Static, against musl. Its sanitizer is the one that needs no library: undefined behaviour traps.
function(hutch_flags_musl target)
    hutch_flags(${target})
    target_compile_options(${target} PRIVATE ${MUSL_COMPILE})
    if(HUTCH_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=undefined -fsanitize-undefined-trap-on-error)
    endif()
endfunction()

# policy/seccomp/NAME -> NAME.inc
function(hutch_filter name)
    add_custom_command(OUTPUT ${HUTCH_GENERATED}/${name}.inc
        COMMAND compile-filter ${CMAKE_SOURCE_DIR}/policy/seccomp ${name} > ${HUTCH_GENERATED}/${name}.inc
        DEPENDS compile-filter ${CMAKE_SOURCE_DIR}/policy/seccomp/refused ${CMAKE_SOURCE_DIR}/policy/seccomp/nosetid
            ${CMAKE_SOURCE_DIR}/policy/seccomp/nocode
            ${CMAKE_SOURCE_DIR}/policy/seccomp/tight ${CMAKE_SOURCE_DIR}/policy/seccomp/standard
            ${CMAKE_SOURCE_DIR}/policy/seccomp/files ${CMAKE_SOURCE_DIR}/policy/seccomp/gateway
            ${CMAKE_SOURCE_DIR}/policy/seccomp/airlock
        COMMENT "compiling seccomp filter ${name}" VERBATIM)
    add_custom_target(filter-${name} DEPENDS ${HUTCH_GENERATED}/${name}.inc)
endfunction()

function(hutch_library name)
    cmake_parse_arguments(arg "" "" "USES;FILTERS" ${ARGN})
    # What follows the last keyword's own values are the sources.
    set(sources ${arg_UNPARSED_ARGUMENTS})
    foreach(list USES FILTERS)
        foreach(item IN LISTS arg_${list})
            if(item MATCHES "\\.c$")
                list(APPEND sources ${item})
                list(REMOVE_ITEM arg_${list} ${item})
            endif()
        endforeach()
    endforeach()
    set(variants ${name})
    if(HUTCH_PROGRAMS)
        list(APPEND variants ${name}-musl)
    endif()
    foreach(variant IN LISTS variants)
        add_library(${variant} STATIC ${sources})
        foreach(filter IN LISTS arg_FILTERS)
            add_dependencies(${variant} filter-${filter})
        endforeach()
        if(variant MATCHES "-musl$")
            hutch_flags_musl(${variant})
            list(TRANSFORM arg_USES APPEND -musl OUTPUT_VARIABLE uses)
            target_link_libraries(${variant} INTERFACE ${uses})
        else()
            hutch_flags_system(${variant})
            target_link_libraries(${variant} INTERFACE ${arg_USES})
        endif()
    endforeach()
endfunction()

# A program, with its link map beside it.
function(hutch_program name)
    cmake_parse_arguments(arg "" "SOURCE;STATIC" "USES" ${ARGN})
    add_executable(${name} ${arg_SOURCE})
    target_link_options(${name} PRIVATE -Wl,-Map=${CMAKE_BINARY_DIR}/${name}.map -Wl,--gc-sections -Wl,--as-needed)
    if(arg_STATIC)
        hutch_flags_musl(${name})
        list(TRANSFORM arg_USES APPEND -musl OUTPUT_VARIABLE uses)
        # A static, position-independent program; gcc's musl specs know only the other kinds.
        target_link_options(${name} PRIVATE -specs=${MUSL_LIB}/musl-gcc.specs -nostartfiles -static
            -Wl,-pie,--no-dynamic-linker,-z,relro,-z,now,-z,text,-z,noexecstack)
        target_link_libraries(${name} PRIVATE ${MUSL_LIB}/rcrt1.o ${MUSL_LIB}/crti.o ${CRT_BEGIN} ${uses}
            ${CRT_END} ${MUSL_LIB}/crtn.o)
    else()
        hutch_flags_system(${name})
        target_link_libraries(${name} PRIVATE ${arg_USES})
    endif()
    if(CMAKE_BUILD_TYPE STREQUAL "Release")
        target_link_options(${name} PRIVATE -s)
    endif()
endfunction()

# A library of the gateway's: against the system's libc only, with other people's libraries. PACKAGES are pkg-config names.
function(hutch_gateway_library name)
    cmake_parse_arguments(arg "" "" "SOURCES;USES;PACKAGES" ${ARGN})
    add_library(${name} STATIC ${arg_SOURCES})
    hutch_flags_system(${name})
    target_link_libraries(${name} PUBLIC ${arg_USES})
    foreach(package IN LISTS arg_PACKAGES)
        if(NOT TARGET PkgConfig::${package})
            pkg_check_modules(${package} REQUIRED IMPORTED_TARGET GLOBAL ${package})
        endif()
        target_link_libraries(${name} PUBLIC PkgConfig::${package})
    endforeach()
endfunction()

# Debian ships llhttp as C sources. Other people's code is compiled without our warnings, but with our hardening.
function(hutch_llhttp)
    set(llhttp /usr/share/llhttp)
    add_library(llhttp STATIC ${llhttp}/api.c ${llhttp}/http.c ${llhttp}/llhttp.c)
    target_include_directories(llhttp SYSTEM PUBLIC /usr/share/include/llhttp)
    # Also for whoever includes its header: the loose parser takes what others on the way read differently.
    target_compile_definitions(llhttp PUBLIC LLHTTP_STRICT_MODE=1)
    target_compile_options(llhttp PRIVATE -w ${HUTCH_HARDENING})
endfunction()

# The bytes of FILE as the initializer of an array, in NAME.inc.
function(hutch_embed file name)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
    file(READ ${CMAKE_SOURCE_DIR}/${file} bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    file(CONFIGURE OUTPUT ${HUTCH_GENERATED}/${name}.inc CONTENT "${bytes}\n" @ONLY)
endfunction()
