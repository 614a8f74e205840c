// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Runner runs tests with faults.
type Runner struct {
	Root string // of the repository
	Temp string // directory for instrumented copies and test binaries; the caller removes it
	// Timeout bounds one test process; a process that exceeds it has detected its fault.
	Timeout time.Duration
	Workers int // processes at a time
	Checks  int // random cases of each property test in Search, 0 for the default of the test
	// Report is called for each fault, by one goroutine at a time, in any order.
	Report func(Result)

	overlay  string
	binaries map[string]binary // directory of a package -> its tests
}

// binary is a compiled test package.
type binary struct {
	path  string
	rapid bool // it has the flags of pgregory.net/rapid
}

// Result says which tests failed with a fault.
type Result struct {
	Fault
	Missed []Test        // tests that should have detected it
	Took   time.Duration // of all its tests
	Found  []string      // tests that failed, if Runner searched for them
}

// Detected reports whether each named test failed.
func (r Result) Detected() bool { return len(r.Missed) == 0 }

// Build instruments the packages and compiles the tests that the faults name, and the extra packages.
func (r *Runner) Build(ctx context.Context, faults []Fault, extra ...string) error {
	var err error
	if r.overlay, err = Overlay(r.Root, r.Temp, faults); err != nil {
		return err
	}
	dirs := map[string]bool{}
	for _, f := range faults {
		for _, t := range f.DetectedBy {
			dirs[t.Dir] = true
		}
	}
	for _, dir := range extra {
		dirs[dir] = true
	}
	r.binaries = map[string]binary{}
	for n, batch := range batches(sortedKeys(dirs)) {
		if err := r.compile(ctx, filepath.Join(r.Temp, "tests"+strconv.Itoa(n)), batch); err != nil {
			return err
		}
	}
	return nil
}

// batches splits directories so that the last elements of a batch differ: they name the binaries.
func batches(dirs []string) [][]string {
	var out [][]string
	count := map[string]int{} // last element -> directories that have it, so far
	for _, dir := range dirs {
		n := count[path.Base(dir)]
		count[path.Base(dir)]++
		if n == len(out) {
			out = append(out, nil)
		}
		out[n] = append(out[n], dir)
	}
	return out
}

// compile compiles the tests of packages into a directory. One go command for all of them loads what they have in
// common once, and links several at a time.
func (r *Runner) compile(ctx context.Context, to string, dirs []string) error {
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	// -vet=off: what a fault leaves may look wrong, as intended. Without tables for debuggers, linking is faster.
	args := []string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", r.overlay, "-o", to}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.Root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling the tests with their faults: %w\n%s", err, out)
	}
	for _, dir := range dirs {
		test := filepath.Join(to, path.Base(dir)+".test")
		out, _ := exec.CommandContext(ctx, test, "-help").CombinedOutput() // exits with 2 after the help
		r.binaries[dir] = binary{path: test, rapid: strings.Contains(string(out), "-rapid.checks")}
	}
	return nil
}

// Baseline runs the tests that the faults name without any fault: all must pass.
func (r *Runner) Baseline(ctx context.Context, faults []Fault) error {
	names := map[string][]string{} // directory of a package -> tests
	for _, f := range faults {
		for _, t := range f.DetectedBy {
			top, _, _ := strings.Cut(t.Name, "/")
			if !slices.Contains(names[t.Dir], top) {
				names[t.Dir] = append(names[t.Dir], top)
			}
		}
	}
	return each(r.Workers, sortedKeys(names), func(dir string) (func(), error) {
		failed, out, err := r.run(ctx, dir, "^("+strings.Join(names[dir], "|")+")$", "", 0)
		if err == nil && failed {
			err = fmt.Errorf("the tests of %s fail without a fault:\n%s", dir, out)
		}
		return nil, err
	})
}

// Run runs the tests of each fault.
func (r *Runner) Run(ctx context.Context, faults []Fault) error {
	return each(r.Workers, faults, func(f Fault) (func(), error) {
		res := Result{Fault: f}
		start := time.Now()
		for _, t := range f.DetectedBy {
			failed, out, err := r.run(ctx, t.Dir, pattern(t.Name), f.ID(), f.Checks)
			if err != nil {
				return nil, err
			}
			if strings.Contains(out, "no tests to run") {
				return nil, fmt.Errorf("fault %s: there is no test %s in %s", f.ID(), t.Name, t.Dir)
			}
			if !failed {
				res.Missed = append(res.Missed, t)
			}
		}
		res.Took = time.Since(start)
		return func() { r.Report(res) }, nil
	})
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// Search runs the tests of a package that match a pattern and reports which failed first.
func (r *Runner) Search(ctx context.Context, dir, tests string, faults []Fault) error {
	return each(r.Workers, faults, func(f Fault) (func(), error) {
		res := Result{Fault: f}
		start := time.Now()
		failed, out, err := r.run(ctx, dir, tests, f.ID(), r.Checks)
		for _, m := range failedTest.FindAllStringSubmatch(out, -1) {
			res.Found = append(res.Found, m[1])
		}
		if failed && len(res.Found) == 0 {
			res.Found = []string{"panic"}
		}
		res.Took = time.Since(start)
		return func() { r.Report(res) }, err
	})
}

// each runs do for each item, several at a time, and what do returns one at a time. It returns the first error.
func each[T any](workers int, items []T, do func(T) (func(), error)) error {
	var mu sync.Mutex // guards first and calls of what do returns
	var first error
	var wg sync.WaitGroup
	next := make(chan T)
	for range max(workers, 1) {
		wg.Go(func() {
			for item := range next {
				then, err := do(item)
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				if err == nil && then != nil {
					then()
				}
				mu.Unlock()
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	wg.Wait()
	return first
}

// pattern matches one test exactly.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// run runs tests with a fault, or without one, and reports whether they failed.
func (r *Runner) run(ctx context.Context, dir, tests, fault string, checks int) (failed bool, output string, err error) {
	b, ok := r.binaries[dir]
	if !ok {
		return false, "", fmt.Errorf("the tests of %s are not compiled", dir)
	}
	args := []string{"-test.run=" + tests, "-test.failfast", "-test.timeout=" + r.Timeout.String()}
	if b.rapid {
		// A fixed seed: whether a fault is detected must not depend on chance.
		args = append(args, "-rapid.nofailfile", "-rapid.shrinktime=0s", "-rapid.seed=1")
		if checks > 0 {
			args = append(args, "-rapid.checks="+strconv.Itoa(checks))
		}
	}
	cmd := exec.CommandContext(ctx, b.path, args...)
	cmd.Dir = filepath.Join(r.Root, dir)
	cmd.Env = append(os.Environ(), Env+"="+fault, "GOMAXPROCS=1")
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		return false, "", fmt.Errorf("running the tests of %s: %w", dir, err)
	}
	return err != nil, string(out), ctx.Err()
}
