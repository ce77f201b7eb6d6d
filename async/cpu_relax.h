#ifndef HAWSER_ASYNC_CPU_RELAX_H_
#define HAWSER_ASYNC_CPU_RELAX_H_

namespace hawser::async {

// To be called in each round of a loop that looks for something another core
// will write: leaves that core, and the other thread of this one, more room.
inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_CPU_RELAX_H_
