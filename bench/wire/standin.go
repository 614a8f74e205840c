// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// standinProcess is the process that plays the API server.
type standinProcess struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *json.Decoder
	hello
}

// serverLimits are settings of Go's runtime for the stand-in: it has one core, and memory for fewer collections.
var serverLimits = []string{"GOMAXPROCS=1", "GOGC=400"}

// startStandin starts it and waits until it serves. It ends with ctx or with this process.
func startStandin(ctx context.Context, program string, l load) (*standinProcess, error) {
	p := &standinProcess{cmd: exec.CommandContext(ctx, program, "bench", "wire-server",
		"--nodes="+strconv.Itoa(l.nodes), "--pods="+strconv.Itoa(l.pods), fmt.Sprintf("--rate=%g", l.rate),
		"--patience="+l.patience.String(), "--dir="+l.dir, "--cpuprofile="+l.cpuProfile)}
	p.cmd.Env = append(os.Environ(), serverLimits...)
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = testcluster.ChildAttributes(syscall.SIGTERM)
	p.cmd.WaitDelay = 10 * time.Second
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = json.NewDecoder(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the stand-in: %w", err)
	}
	return p, nil
}

// ask sends a command and reads its answer; an empty command reads the first line.
func (p *standinProcess) ask(command string, answer any) error {
	if command != "" {
		if _, err := fmt.Fprintln(p.in, command); err != nil {
			return fmt.Errorf("tell the stand-in to %s: %w", command, err)
		}
	}
	if err := p.answers.Decode(answer); err != nil {
		return fmt.Errorf("answer of the stand-in to %q: %w", command, err)
	}
	return nil
}

// close ends the process and waits for it.
func (p *standinProcess) close() error {
	err := errors.Join(p.in.Close(), p.cmd.Wait())
	if err != nil {
		return fmt.Errorf("end the stand-in: %w", err)
	}
	return nil
}

// clocks are CPU seconds at one moment.
type clocks struct {
	testbed.Usage
	idle [2]float64 // seconds in which the core of the stand-in, and that of the scheduler, did nothing
	at   time.Time
}

// clocksOf reads the clocks of both processes and both cores.
func clocksOf(s *testbed.Scheduler, p *standinProcess, cores [2]int) (c clocks, err error) {
	c.at = time.Now()
	if c.Usage, err = testbed.ReadUsage(s.Cmd.Process.Pid, []int{p.cmd.Process.Pid}); err != nil {
		return c, err
	}
	for i, core := range cores {
		if c.idle[i], err = testbed.CoreIdle(core); err != nil {
			return c, err
		}
	}
	return c, nil
}
