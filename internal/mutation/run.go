// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
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
	for _, dir := range sortedKeys(dirs) {
		path := filepath.Join(r.Temp, strings.ReplaceAll(dir, "/", "-")+".test")
		// -vet=off: what a fault leaves may look wrong, as intended.
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", r.overlay, "-o", path, ".")
		cmd.Dir = filepath.Join(r.Root, dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("compiling the tests of %s with its faults: %w\n%s", dir, err, out)
		}
		list := exec.CommandContext(ctx, path, "-help")
		out, _ := list.CombinedOutput() // exits with 2 after the help
		r.binaries[dir] = binary{path: path, rapid: strings.Contains(string(out), "-rapid.checks")}
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
	for _, dir := range sortedKeys(names) {
		failed, out, err := r.run(ctx, dir, "^("+strings.Join(names[dir], "|")+")$", "", 0)
		if err != nil {
			return err
		}
		if failed {
			return fmt.Errorf("the tests of %s fail without a fault:\n%s", dir, out)
		}
	}
	return nil
}

// Run runs the tests of each fault.
func (r *Runner) Run(ctx context.Context, faults []Fault) error {
	return r.each(faults, func(f Fault) (Result, error) {
		res := Result{Fault: f}
		start := time.Now()
		for _, t := range f.DetectedBy {
			failed, out, err := r.run(ctx, t.Dir, pattern(t.Name), f.ID(), f.Checks)
			if err != nil {
				return res, err
			}
			if strings.Contains(out, "no tests to run") {
				return res, fmt.Errorf("fault %s: there is no test %s in %s", f.ID(), t.Name, t.Dir)
			}
			if !failed {
				res.Missed = append(res.Missed, t)
			}
		}
		res.Took = time.Since(start)
		return res, nil
	})
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// Search runs the tests of a package that match a pattern and reports which failed first.
func (r *Runner) Search(ctx context.Context, dir, tests string, faults []Fault) error {
	return r.each(faults, func(f Fault) (Result, error) {
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
		return res, err
	})
}

// each runs do for each fault, several at a time, and reports the results.
func (r *Runner) each(faults []Fault, do func(Fault) (Result, error)) error {
	var mu sync.Mutex // guards first and calls of Report
	var first error
	var wg sync.WaitGroup
	next := make(chan Fault)
	for range max(r.Workers, 1) {
		wg.Go(func() {
			for f := range next {
				res, err := do(f)
				mu.Lock()
				if err != nil && first == nil {
					first = err
				}
				if err == nil {
					r.Report(res)
				}
				mu.Unlock()
			}
		})
	}
	for _, f := range faults {
		next <- f
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
