// Settings of malloc for the memory of messages.

#ifndef HAWSER_RPC_GRPC_TUNING_MALLOC_TUNING_H_
#define HAWSER_RPC_GRPC_TUNING_MALLOC_TUNING_H_

namespace hawser::rpc {

// gRPC allocates the memory of each received message by malloc and frees it
// with the message. By default glibc returns free memory at the end of a heap
// to the kernel above 128 KiB, and maps larger blocks individually. For the
// next message the pages are cleared and mapped again, which costs about as
// much as receiving it.
//
// Makes malloc keep up to 256 MiB of free memory at the end of each heap, and
// allocate blocks of up to 32 MiB from the heaps: mallopt(3), M_TRIM_THRESHOLD
// and M_MMAP_THRESHOLD. Applies to the whole process; only the first call has
// an effect. Does nothing if the environment configures malloc (GLIBC_TUNABLES,
// MALLOC_TRIM_THRESHOLD_, MALLOC_MMAP_THRESHOLD_), or with another C library.
void TuneMalloc();

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_GRPC_TUNING_MALLOC_TUNING_H_
