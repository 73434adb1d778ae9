// Runs copy-seq of benches/programs/lisp in Go. TIMES=2000 THREADS=2 ./copy_seq
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type pair struct {
	car int
	cdr *pair
}

func copied(from *pair) *pair {
	var head *pair
	end := &head
	for ; from != nil; from = from.cdr {
		*end = &pair{car: from.car}
		end = &(*end).cdr
	}
	return head
}

func weighed(list *pair) int {
	sum := 0
	for place := 1; list != nil; list = list.cdr {
		sum += place * list.car
		place++
	}
	return sum
}

// Returns the processor time of all collections since the start, as a share of all processors.
func collecting() float64 {
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(sample)
	return sample[0].Value.Float64() / float64(runtime.GOMAXPROCS(0))
}

func setting(name string) int {
	number, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		return 1
	}
	return number
}

func main() {
	times, threads := setting("TIMES"), setting("THREADS")
	var list *pair
	for i := 0; i < 1000; i++ {
		list = &pair{i, list}
	}
	result := make([]*pair, threads)
	runtime.GC()
	before, start := collecting(), time.Now()
	var all sync.WaitGroup
	for t := 0; t < threads; t++ {
		all.Add(1)
		go func(t int) {
			defer all.Done()
			var copy *pair
			for i := 0; i < times; i++ {
				copy = copied(list)
			}
			result[t] = copy
		}(t)
	}
	all.Wait()
	seconds := time.Since(start).Seconds()
	// The counters are updated when a collection ends.
	collected := collecting() - before
	answers := make([]string, threads)
	for t, copy := range result {
		answers[t] = strconv.Itoa(weighed(copy))
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	fmt.Printf("{\"test\":\"copy-seq\",\"seconds\":%f,\"gc_seconds\":%f,\"answer\":[%s],\"bits\":\"\"}\n",
		seconds, collected, strings.Join(answers, ","))
	fmt.Printf("{\"peak_kb\":%d,\"hugetlb_kb\":0,\"about\":\"%s\"}\n", usage.Maxrss, runtime.Version())
}
