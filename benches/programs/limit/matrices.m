% Vectors of 160 MB: sorted, summed, compared.
rand("seed", 1);
x = mod((1:2e7) * 7919, 1000003);
[y, order] = sort(x);
z = cumsum(y) ./ (1:2e7);
printf("%.15g %.15g %d\n", z(end), sum(x(order) == y), order(12345));
