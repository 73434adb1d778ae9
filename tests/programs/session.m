1;
a = reshape(mod(1:490000, 1009), 700, 700) / 1009 + eye(700);
printf("%.15g %.15g\n", sum((a * a')(:)), sum((a \ ones(700, 1))));
x = []; for i = 1:2000, x(end + 1) = i; end
b = zeros(1, 1e6); b(7) = 1; c = b; c(8) = 2;
printf("%g %g %g\n", sum(x), sum(b), sum(c));
printf("%.15g\n", sum(abs(fft(mod(1:2^18, 97)))));
s = sort(mod((1:5e5) * 7919, 1000003)); printf("%d\n", s(1:50000:end));
try, z = zeros(1e8, 1e8); catch e, disp("no memory"); end
fputs(stderr, "to stderr\n");
exit(4);
