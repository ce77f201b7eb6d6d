// ThreadSanitizer sees the memory accesses that the system's libraries make
// through intercepted functions, such as memcpy and malloc, but not the atomic
// operations that order them. Ignoring those calls leaves our own code checked.
// The name is the sanitizer's choice.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgrpc++.so\n"
         "called_from_lib:libgrpc.so\n"
         "called_from_lib:libgpr.so\n"
         "called_from_lib:libupb.so\n"
         "called_from_lib:libcrypto.so\n"
         "called_from_lib:libssl.so\n"
         "called_from_lib:libdnnl.so\n"
         "called_from_lib:libgomp.so\n"
         "called_from_lib:libabsl_graphcycles_internal.so\n"
         "called_from_lib:libabsl_synchronization.so\n"
         "called_from_lib:libabsl_malloc_internal.so\n"
         "race:libabsl_\n"
         "race:libgrpc\n"
         // The last reference's decrement is in the library.
         "race:absl::*::Status::Unref\n";
}
