/* examples/classify.cpp: classifies a picture, by the C++ interface.
 *
 *   c++ -std=c++17 classify.cpp $(pkg-config --cflags --libs ortc) -o classify
 *   ./classify digits.onnx seven.pgm labels.txt
 *
 * The picture is a binary PGM (grey, P5) of the size that the model takes; samples go in as they are, 0 to
 * 255.
 */
#include <algorithm>
#include <fstream>
#include <iostream>
#include <numeric>
#include <ortc/ortc.hpp>

static std::vector<float> read_pgm(const std::string &path, std::int64_t &width, std::int64_t &height)
{
    std::ifstream file(path, std::ios::binary);
    std::string magic;
    int most = 0;
    if (!(file >> magic >> width >> height >> most) || magic != "P5" || most != 255 || width < 1 ||
        height < 1 || width > 4096 || height > 4096)
        throw std::runtime_error(path + ": expected a binary PGM of 8 bits");
    file.get(); /* the one blank behind the head */
    std::vector<float> pixels;
    for (int c; (c = file.get()) != EOF;) pixels.push_back(static_cast<float>(c));
    if (pixels.size() != static_cast<std::size_t>(width * height))
        throw std::runtime_error(path + ": it ends too early");
    return pixels;
}

int main(int argc, char **argv)
try {
    if (argc < 3) {
        std::cerr << "usage: classify MODEL PICTURE.pgm [LABELS]\n";
        return 2;
    }
    std::int64_t width = 0, height = 0;
    const std::vector<float> pixels = read_pgm(argv[2], width, height);
    std::vector<std::string> labels;
    if (argc > 3) {
        std::ifstream file(argv[3]);
        for (std::string line; std::getline(file, line);) labels.push_back(line);
    }

    const ortc::model model(argv[1]);
    const ortc::session session(model);
    const auto out = session.run(
        {{model.inputs()[0]->name, ortc::value::copy<float>({1, 1, height, width}, pixels)}});

    const auto scores = out[0].data<float>();
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    for (std::size_t i = 0; i < std::min<std::size_t>(3, order.size()); i++)
        std::cout << (order[i] < labels.size() ? labels[order[i]] : std::to_string(order[i])) << ' '
                  << scores[order[i]] << '\n';
} catch (const std::exception &e) {
    std::cerr << e.what() << '\n';
    return 1;
}
