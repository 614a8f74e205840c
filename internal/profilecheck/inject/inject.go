// SPDX-License-Identifier: Apache-2.0

// Package inject owns what a scheduler does that has a cause built into it. Production code does not import it: package
// profilecheck compiles a copy of kumiki in which some functions begin with a call of it, and starts that copy with the
// name of one cause and its strength in the environment.
package inject

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Env is the environment variable with the cause and its strength: plugin=40ms, decided-ahead-limit=2. Without it,
// nothing is different.
const Env = "KUMIKI_PROFILECHECK_INJECT"

// injection is one cause.
type injection struct {
	cause    string
	strength string
	mu       sync.Mutex
	last     time.Time // guarded by mu; see Skip
	// list is memory that the garbage collector must walk through, for that cause.
	list *link
}

// link is an element of a list in memory, of the least size that the collector has to follow.
type link struct{ next *link }

var active = start(os.Getenv(Env))

// start reads an injection. For a lock, it begins to hold it; for the garbage collector, it allocates the links of a
// list, as many as the strength says.
func start(text string) *injection {
	cause, strength, _ := strings.Cut(text, "=")
	i := &injection{cause: cause, strength: strength}
	if cause == "lock" {
		go i.hold()
	}
	if cause == "gc" {
		i.list = scattered(i.number(cause, 0))
	}
	return i
}

// scattered returns a list whose neighbours lie apart in memory, so that the collector waits for memory at each.
func scattered(n int) *link {
	links := make([]*link, n)
	for i := range links {
		links[i] = &link{}
	}
	rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { links[i], links[j] = links[j], links[i] })
	var list *link
	for _, l := range links {
		l.next, list = list, l
	}
	return list
}

// hold holds the mutex for the strength, again and again.
func (i *injection) hold() {
	for {
		i.mu.Lock()
		time.Sleep(i.duration())
		i.mu.Unlock()
	}
}

func (i *injection) duration() time.Duration {
	d, _ := time.ParseDuration(i.strength)
	return d
}

// Spin computes for the strength of the cause, if it is the one that is injected.
func Spin(cause string) { active.spin(cause) }

func (i *injection) spin(cause string) {
	if i.cause != cause {
		return
	}
	for end := time.Now().Add(i.duration()); time.Now().Before(end); {
	}
}

// Wait waits for a mutex that another goroutine holds, if that is injected.
func Wait(cause string) { active.wait(cause) }

func (i *injection) wait(cause string) {
	if i.cause == cause {
		i.mu.Lock()
		i.mu.Unlock() //nolint:staticcheck // the wait alone matters
	}
}

// Skip reports whether work is to be left undone: until the strength has passed since it was last done.
func Skip(cause string) bool { return active.skip(cause, time.Now()) }

func (i *injection) skip(cause string, now time.Time) bool {
	if i.cause != cause {
		return false
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if now.Sub(i.last) < i.duration() {
		return true
	}
	i.last = now
	return false
}

// Number returns the strength of a cause that is a limit, or the value without the cause.
func Number(cause string, otherwise int) int { return active.number(cause, otherwise) }

func (i *injection) number(cause string, otherwise int) int {
	if n, err := strconv.Atoi(i.strength); err == nil && i.cause == cause {
		return n
	}
	return otherwise
}
