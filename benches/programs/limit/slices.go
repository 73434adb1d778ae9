// Fills slices of Go's heap, 560 MiB in all, and sorts some of them. It is linked dynamically, since it uses C.
package main

// #include <stdlib.h>
import "C"

import (
	"fmt"
	"sort"
)

func main() {
	state, sum := uint64(1), uint64(0)
	slices := make([][]uint64, 70)
	for at := range slices {
		slices[at] = make([]uint64, 1<<20)
		for place := range slices[at] {
			state = state*6364136223846793005 + 1442695040888963407
			slices[at][place] = state >> 20
		}
	}
	for at, slice := range slices {
		if at%10 == 0 {
			sort.Slice(slice, func(a, b int) bool { return slice[a] < slice[b] })
		}
		for place := 0; place < len(slice); place += 1000 {
			sum = sum*31 + slice[place]
		}
	}
	fmt.Println(len(slices), sum, C.abs(-7))
}
