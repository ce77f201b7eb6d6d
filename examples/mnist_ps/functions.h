#ifndef HAWSER_EXAMPLES_MNIST_PS_FUNCTIONS_H_
#define HAWSER_EXAMPLES_MNIST_PS_FUNCTIONS_H_

#include <cstdint>
#include <string>

#include "rpc/functions/function.h"
#include "rref/rref.h"
#include "tensor/tensor.h"

// Remote functions of the job, besides fetching, gradients and optimizer steps.
namespace hawser::examples::mnist_ps {

// Of a server: keeps a parameter under a name, with that initial value.
inline constexpr rpc::Function<rref::RRef<Tensor>(std::string, Tensor)>
    kCreateParameter{"mnist_ps.CreateParameter"};

// Of a server: the parameter of that name, once somebody has created it.
inline constexpr rpc::Function<rref::RRef<Tensor>(std::string)> kFindParameter{
    "mnist_ps.FindParameter"};

// Of trainer 0: trainer `index` has seen all its samples, so many.
inline constexpr rpc::Function<void(int64_t, int64_t)> kTrainerDone{
    "mnist_ps.TrainerDone"};

// Of everybody: the job is over. Empty when all is done, otherwise why it
// cannot go on.
inline constexpr rpc::Function<void(std::string)> kEndJob{"mnist_ps.EndJob"};

}  // namespace hawser::examples::mnist_ps

#endif  // HAWSER_EXAMPLES_MNIST_PS_FUNCTIONS_H_
