# cmake -DFROM=FILE -DTO=FILE.inc -P embed.cmake: the bytes of a file as the items of a C array.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x[^x]*x[^x]*x[^x]*x[^x]*x[^x]*x[^x]*x[^x]*x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${TO} "${bytes}\n")
