# A hash of 3 million strings in small blocks.
use strict;
my %hash = map { ("key " . ($_ * 7919 % 3000017)) => "value $_" } 1 .. 3000000;
my $sum = 0;
$sum += length $hash{"key $_"} for grep { exists $hash{"key $_"} } map { $_ * 10 } 1 .. 100000;
print scalar(keys %hash), " $sum\n";
