// SPDX-License-Identifier: Apache-2.0

package ecosystem

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Process is a child process. It ends with this process at the latest.
type Process struct {
	cmd    *exec.Cmd
	output *lines
	// ended is closed when the process is gone; exit is valid then.
	ended chan struct{}
	exit  error
	stop  sync.Once
}

// lines collects what a process prints, and passes it on.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	to   io.Writer
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	return l.to.Write(p)
}

// Spawn starts a program; its output is kept and written to output.
func Spawn(cmd *exec.Cmd, output io.Writer) (*Process, error) {
	p := &Process{cmd: cmd, output: &lines{to: output}, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	cmd.SysProcAttr = testcluster.ChildAttributes(syscall.SIGKILL)
	cmd.WaitDelay = time.Second
	if err := testcluster.Spawn(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		p.exit = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Output returns all that the process has printed.
func (p *Process) Output() string {
	p.output.mu.Lock()
	defer p.output.mu.Unlock()
	return p.output.text.String()
}

// tailLines is how much of the output errors show.
const tailLines = 40

// tail returns the end of the output.
func (p *Process) tail() string {
	all := strings.Split(strings.TrimSpace(p.Output()), "\n")
	return strings.Join(all[max(len(all)-tailLines, 0):], "\n")
}

// Ended is closed when the process is gone, wanted or not.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// alive returns an error with the end of the output if the process is gone.
func (p *Process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %w\n%s", p.cmd.Path, p.exit, p.tail())
	default:
		return nil
	}
}

// grace is how long a process may take to end.
const grace = 15 * time.Second

// Stop ends the process: with SIGTERM, and with SIGKILL if that does not help. It may be called again.
func (p *Process) Stop() {
	p.stop.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(grace):
			_ = p.cmd.Process.Kill()
			<-p.ended
		}
	})
}
