// Command dice prints a hash of what the runtime decides by chance: the order of a map, the choices
// of select, the order of goroutines, an address.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

func main() {
	hash := sha256.New()
	count := map[string]int{}
	for i := range 1000 {
		count[fmt.Sprint(i)]++
	}
	for key := range count {
		fmt.Fprint(hash, key, " ")
	}
	left, right := make(chan int, 1000), make(chan int, 1000)
	for i := range 1000 {
		left <- i
		right <- i
	}
	for range 1000 {
		select {
		case <-left:
			fmt.Fprint(hash, "l")
		case <-right:
			fmt.Fprint(hash, "r")
		}
	}
	said := make(chan string, 10)
	for range 50 {
		go func() {
			for i := range 20 {
				busy := strings.Repeat("x", 100*i) // takes time, so that the monitor would preempt some
				runtime.Gosched()
				said <- fmt.Sprintf("%p %d", &busy, len(busy))
			}
		}()
	}
	for range 1000 {
		fmt.Fprint(hash, <-said)
	}
	fmt.Printf("%x\n", hash.Sum(nil)[:8])
	switch {
	case len(os.Args) < 2:
	case os.Args[1] == "wait":
		time.Sleep(time.Hour)
	default:
		os.Exit(2)
	}
}
