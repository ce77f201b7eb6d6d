#include <cstdio>
#include <cstring>

// Writes an array through a pointer the compiler knows the bounds of, which is
// what stack protectors and fortified string functions act on.
int main(int argc, char** argv) {
  char name[64];
  std::snprintf(name, sizeof(name), "%s", argv[argc - 1]);
  std::strncat(name, "!", sizeof(name) - std::strlen(name) - 1);
  std::puts(name);
  return 0;
}
