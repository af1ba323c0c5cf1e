// A small convolutional net of dlib's, trained for a few steps: dlib calls cuDNN's legacy API, forward and backward.
//
//   dlib_client [STEPS]    prints the loss at the first and the last step
#include <dlib/dnn.h>

#include <cstdlib>
#include <iostream>

namespace {

using dlib::con;
using dlib::relu;
// Same padding, stride 1: every convolution but the first one's input gradient is computed.
template <long filters, typename Below>
using layer = relu<dlib::add_layer<dlib::con_<filters, 3, 3, 1, 1, 1, 1>, Below>>;
using Net = dlib::loss_multiclass_log<dlib::fc<10, dlib::avg_pool_everything<layer<32, layer<32, dlib::input<dlib::matrix<float>>>>>>>;

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
  dlib::rand random(0);
  std::vector<dlib::matrix<float>> images(32, dlib::matrix<float>(28, 28));
  std::vector<unsigned long> labels;
  for (auto& image : images) {
    for (float& pixel : image) pixel = static_cast<float>(random.get_random_gaussian());
    labels.push_back(labels.size() % 10);
  }
  Net net;
  dlib::dnn_trainer<Net> trainer(net, dlib::sgd(0, 0.9f));
  trainer.set_learning_rate(0.01);
  for (int step = 0; step < steps; ++step) {
    trainer.train_one_step(images, labels);
    if (step == 0 || step == steps - 1) std::cout << "loss " << trainer.get_average_loss() << std::endl;
  }
}
