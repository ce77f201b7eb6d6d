#ifndef HAWSER_ASYNC_CPU_RELAX_H_
#define HAWSER_ASYNC_CPU_RELAX_H_

namespace hawser::async {

// CPU hint for each iteration of a spin loop that waits for a write by another
// core. Leaves more resources to that core and to the sibling hardware thread
// of this one.
inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_CPU_RELAX_H_
