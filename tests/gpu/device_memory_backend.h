// Runs tests of the CPU on a backend of another device.

#ifndef HAWSER_TESTS_GPU_DEVICE_MEMORY_BACKEND_H_
#define HAWSER_TESTS_GPU_DEVICE_MEMORY_BACKEND_H_

#include <memory>

#include "collectives/backend.h"
#include "tensor/device.h"

namespace hawser::tests {

// Serves memory of the CPU by copies on `device`, which `backend` serves.
std::unique_ptr<collectives::Backend> MakeDeviceMemoryBackend(
    std::unique_ptr<collectives::Backend> backend, tensor::Device device);

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_GPU_DEVICE_MEMORY_BACKEND_H_
