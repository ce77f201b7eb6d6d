// Settings of malloc for the memory that messages free.

#ifndef HAWSER_RPC_GRPC_TUNING_MALLOC_TUNING_H_
#define HAWSER_RPC_GRPC_TUNING_MALLOC_TUNING_H_

namespace hawser::rpc {

// gRPC takes the memory of each message that it receives from malloc and frees
// it with the message. By default glibc gives free memory back to the kernel
// once a heap ends in 128 KiB of it, and takes larger blocks from the kernel
// one by one: for the next message the pages are cleared and mapped anew, which
// costs about as much as receiving it.
//
// Has malloc keep up to 256 MiB of free memory at the end of each of its heaps,
// and serve blocks of up to 32 MiB from them: mallopt(3), M_TRIM_THRESHOLD and
// M_MMAP_THRESHOLD. For the whole process; only the first call does anything.
// Does nothing if the environment says what malloc is to do (GLIBC_TUNABLES,
// MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_), or with another C library.
void TuneMalloc();

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TUNING_MALLOC_TUNING_H_
