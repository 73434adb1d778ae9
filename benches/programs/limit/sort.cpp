// A stable sort of 48 million numbers, which needs a buffer of half their size.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <vector>

int main() {
    std::vector<double> numbers(48'000'000);
    std::uint32_t state = 1;
    for (double &number : numbers) number = (state = state * 1664525u + 1013904223u) / 7.0;
    std::stable_sort(numbers.begin(), numbers.end());
    double sum = 0;
    for (std::size_t at = 0; at < numbers.size(); at += 3) sum += numbers[at] * double(at % 11);
    std::printf("%.17g %.17g %.17g\n", sum, numbers.front(), numbers[numbers.size() / 2]);
}
