// SPDX-License-Identifier: Apache-2.0

package profilecheck

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// edit puts calls of package inject into a file of kumiki.
type edit struct {
	file string // relative to the root of the repository
	// at is a line of the file, which occurs once; call is inserted behind it, or before it if before is set.
	at, call string
	before   bool
}

// edits are the causes that need a scheduler with a fault.
var edits = []edit{
	{"core/plugins/resources/balanced_allocation.go",
		"func (f *balancedScore) Plain(s cluster.Snapshot, v *cluster.NodeView) int64 {",
		`inject.Spin("plugin")`, false},
	{"core/plugins/resources/balanced_allocation.go",
		"func (f *balancedScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {",
		`inject.Spin("plugin")`, false},
	{"core/plugins/resources/column.go",
		"func (f *fitScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {",
		`inject.Spin("plugin")`, false},
	{"core/queue/wake.go", "func (q *Queue) judge(g *group, p *cluster.Pod, ch plugin.Change) verdict {",
		`inject.Spin("hints")`, false},
	{"core/preempt/find.go", "func (f *Finder) Find(s cluster.Snapshot, q Question) Answer {",
		`inject.Spin("preemption")`, false},
	{"core/gang/ground.go", "func (g *Ground) begin(members []*cluster.Pod) {", `inject.Spin("gang-search")`, false},
	{"core/engine/observe.go", "func (e *Engine) setPod(p *cluster.Pod) {", `inject.Spin("intake")`, false},
	{"core/engine/cycle.go", "	unit, ok := e.pace.Next()",
		`inject.Spin("scheduler-cpu"); inject.Wait("lock")`, true},
	{"kube/loop.go", "	for _, see := range l.cfg.Observers {", `inject.Spin("observers")`, true},
	{"kube/loop.go", "	decides := l.deciding.Load() && l.lead() && !l.cfg.Inbox.Behind()",
		`decides = decides && (!l.cfg.Engine.Ready() || !inject.Skip("lost-wake-up"))`, false},
	{"kube/loop.go", "	cfg.Metrics.SetLimit(metrics.DecidedAheadLimit, float64(cfg.DecidedAhead))",
		`cfg.DecidedAhead = inject.Number("decided-ahead-limit", cfg.DecidedAhead)`, true},
}

const injectImport = "import \"github.com/kumiki-scheduler/kumiki/internal/profilecheck/inject\"\n"

// apply returns a file with its edits.
func apply(file, text string) (string, error) {
	for _, e := range edits {
		if e.file != file {
			continue
		}
		line := "\n" + e.at + "\n"
		if n := strings.Count(text, line); n != 1 {
			return "", fmt.Errorf("%s has the line %q %d times, and must have it once", file, e.at, n)
		}
		with := line + e.call + "\n"
		if e.before {
			with = "\n" + e.call + line
		}
		text = strings.Replace(text, line, with, 1)
	}
	at := strings.Index(text, "\npackage ") + 1
	if at == 0 {
		return "", fmt.Errorf("%s has no package clause", file)
	}
	end := at + strings.IndexByte(text[at:], '\n') + 1
	return text[:end] + injectImport + text[end:], nil
}

// BuildInjected compiles a copy of kumiki into which causes can be injected. root is the repository; dir gets the
// changed files and the program, whose name is returned. ldflags are the flags of the linker.
func BuildInjected(ctx context.Context, root, dir, ldflags string) (string, error) {
	replace := map[string]string{} // file -> changed file
	for i, e := range edits {
		original, err := filepath.Abs(filepath.Join(root, e.file))
		if err != nil {
			return "", fmt.Errorf("building the scheduler with causes: %w", err)
		}
		if replace[original] != "" {
			continue
		}
		text, err := os.ReadFile(original)
		if err != nil {
			return "", fmt.Errorf("building the scheduler with causes: %w", err)
		}
		changed, err := apply(e.file, string(text))
		if err != nil {
			return "", fmt.Errorf("building the scheduler with causes: %w", err)
		}
		replace[original] = filepath.Join(dir, fmt.Sprintf("%d-%s", i, filepath.Base(e.file)))
		if err := os.WriteFile(replace[original], []byte(changed), 0o600); err != nil {
			return "", fmt.Errorf("building the scheduler with causes: %w", err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("building the scheduler with causes: %w", err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return "", fmt.Errorf("building the scheduler with causes: %w", err)
	}
	program := filepath.Join(dir, "injected", "kumiki")
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags", ldflags, "-overlay", list, "-o",
		program, "./cmd/kumiki")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the scheduler with causes: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return program, nil
}
