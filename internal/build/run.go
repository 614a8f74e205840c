// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Command is one call of the go command.
type Command struct {
	Dir  string   // working directory
	Env  []string // in addition to that of this process
	Args []string
}

// Plan is what to build.
type Plan struct {
	// Packages are what the commands compile, with what it imports, as arguments of go list in Packages.Dir.
	Packages Command
	// Sums are the go.sum files of the modules.
	Sums []string
	// Compile is run first, with -v among its arguments. It may be empty if Link compiles, too.
	Compile []Command
	// Link is run after it, all commands at the same time.
	Link []Command
}

// How often the progress is shown.
const (
	liveInterval  = 250 * time.Millisecond
	plainInterval = 10 * time.Second
)

// Run builds, and shows the progress: on a terminal (live) in one line that is written over, else in a line every ten
// seconds. It writes nothing if nothing has to be done.
func Run(ctx context.Context, p Plan, progress io.Writer, live bool) error {
	r := &runner{plan: p, progress: progress, live: live, state: State{CPUs: runtime.NumCPU(), Part: Compiling}}
	ctx, stop := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() { r.show(ctx) })
	err := r.steps(ctx)
	stop()
	shown.Wait()
	return err
}

// runner runs the commands of a plan.
type runner struct {
	plan     Plan
	progress io.Writer
	live     bool

	listing sync.Once
	mu      sync.Mutex
	state   State
	busy    bool // there is something to do, so that the progress is shown
	begun   []string
	work    *Work // nil until the list of packages is there
	// firstModule and firstPackage are when the first download and the first compilation began.
	firstModule, firstPackage time.Time
}

func (r *runner) steps(ctx context.Context) error {
	for _, c := range r.plan.Compile {
		if err := r.run(ctx, c); err != nil {
			return err
		}
	}
	if len(r.plan.Compile) > 0 {
		r.mu.Lock()
		r.state.Part = Linking
		r.mu.Unlock()
	}
	errs := make([]error, len(r.plan.Link))
	var all sync.WaitGroup
	for i, c := range r.plan.Link {
		all.Go(func() { errs[i] = r.run(ctx, c) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// goCommand returns a go command, whose own children stop with it.
func goCommand(ctx context.Context, c Command) *exec.Cmd {
	name := os.Getenv("GO")
	if name == "" {
		name = "go"
	}
	cmd := exec.CommandContext(ctx, name, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, append(environment(), c.Env...)
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs a command and reads what it writes. Complaints are part of the error.
func (r *runner) run(ctx context.Context, c Command) error {
	cmd := goCommand(ctx, c)
	out, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("run go: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run go: %w", err)
	}
	var complaints []string
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := ParseLine(lines.Text())
		if line.Complaint != "" {
			complaints = append(complaints, line.Complaint)
			continue
		}
		r.read(ctx, line)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", c.Args[0], err, strings.Join(complaints, "\n"))
	}
	return nil
}

// read records a line of go build -v.
func (r *runner) read(ctx context.Context, line Line) {
	if line == (Line{}) {
		return
	}
	r.listing.Do(func() { go r.list(ctx) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = true
	switch {
	case line.Module != "" && r.firstPackage.IsZero():
		if r.firstModule.IsZero() {
			r.firstModule, r.state.Part = time.Now(), Downloading
		}
		r.state.Modules++
	case line.Package != "":
		if r.firstPackage.IsZero() {
			r.firstPackage = time.Now()
		}
		if r.state.Part == Downloading {
			r.state.Part = Compiling
		}
		r.begun = append(r.begun, line.Package)
	}
}

// list reads which packages the commands compile. Its failure is no failure of the build, which then has no exact
// percentage.
func (r *runner) list(ctx context.Context) {
	missing := r.missing()
	r.mu.Lock()
	r.state.MissingModules = missing
	r.mu.Unlock()
	// An import of a package that the standard library vendors has another path there, and is not counted.
	const format = "{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles \" \"}}\t{{join .Imports \" \"}}"
	c := r.plan.Packages
	c.Args = append([]string{"list", "-deps", "-f", format}, c.Args...)
	text, err := goCommand(ctx, c).Output()
	if err != nil {
		return
	}
	list, err := ParsePackages(strings.NewReader(withSizes(string(text))))
	if err != nil {
		return
	}
	work := NewWork(list)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work = work
}

// withSizes replaces the directory and the file names of each line by the sum of the sizes of the files.
func withSizes(text string) string {
	var out bytes.Buffer
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 {
			continue
		}
		size := int64(0)
		for _, name := range strings.Fields(fields[2]) {
			if info, err := os.Stat(filepath.Join(fields[1], name)); err == nil {
				size += info.Size()
			}
		}
		fmt.Fprintf(&out, "%s\t%d\t%s\n", fields[0], size, fields[3])
	}
	return out.String()
}

// missing returns how many modules of the go.sum files are not in the module cache.
func (r *runner) missing() (n int) {
	cache, err := goCommand(context.Background(), Command{Args: []string{"env", "GOMODCACHE"}}).Output()
	if err != nil {
		return 0
	}
	seen := map[string]bool{} // module -> true
	for _, file := range r.plan.Sums {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, module := range Sums(string(text)) {
			if seen[module] {
				continue
			}
			seen[module] = true
			if _, err := os.Stat(filepath.Join(strings.TrimSpace(string(cache)), CacheName(module))); err != nil {
				n++
			}
		}
	}
	return n
}

// now returns the state, and whether it is worth a line.
func (r *runner) now() (s State, busy bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.state
	if !r.firstModule.IsZero() {
		s.Downloading = time.Since(r.firstModule)
	}
	if !r.firstPackage.IsZero() {
		s.Compiling = time.Since(r.firstPackage)
	}
	if r.work != nil {
		for i, path := range r.begun {
			r.work.Begun(path)
			if i == 0 && r.state.Found == 0 {
				r.state.Found = r.work.Ready()
			}
		}
		r.begun = r.begun[:0]
		s.Found, s.Ready, s.Total = r.state.Found, r.work.Ready(), r.work.Total()
	}
	return s, r.busy
}

// show writes the progress until ctx ends.
func (r *runner) show(ctx context.Context) {
	interval := plainInterval
	if r.live {
		interval = liveInterval
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	width := 0
	for {
		select {
		case <-ctx.Done():
			if width > 0 {
				fmt.Fprintf(r.progress, "\r%*s\r", width, "")
			}
			return
		case <-tick.C:
		}
		s, busy := r.now()
		switch {
		case busy && r.live:
			line := s.String()
			fmt.Fprintf(r.progress, "\r%-*s", width, line)
			width = max(width, len(line))
		case busy:
			fmt.Fprintln(r.progress, s)
		}
	}
}
