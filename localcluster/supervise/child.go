// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/kumiki-scheduler/kumiki/localcluster/roles"
)

// Phase is what a child process is doing.
type Phase string

// The phases of a child.
const (
	// Running: the process lives and gets CPU time.
	Running Phase = "running"
	// Stopped: frozen with SIGSTOP by the sub-command stop.
	Stopped Phase = "stopped"
	// Killed: ended by the sub-command kill.
	Killed Phase = "killed"
	// Exited: ended on its own; an error unless the cluster is going down.
	Exited Phase = "exited"
)

// spawner starts processes from one OS thread that is never given back: the
// kernel sends the parent-death signal when the thread that forked ends, not
// when the process does.
type spawner struct {
	requests chan spawnRequest
}

type spawnRequest struct {
	cmd  *exec.Cmd
	done chan error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	go func() {
		runtime.LockOSThread()
		for r := range s.requests {
			r.done <- r.cmd.Start()
		}
	}()
	return s
}

func (s *spawner) start(cmd *exec.Cmd) error {
	r := spawnRequest{cmd: cmd, done: make(chan error, 1)}
	s.requests <- r
	return <-r.done
}

// child is one process. Its fields are guarded by the supervisor's mutex, but
// for ended, which is closed once by the goroutine that waits for the process.
type child struct {
	role  string
	cmd   *exec.Cmd
	phase Phase
	// exit is the process state as text, once ended.
	exit  string
	ended chan struct{}
}

// command builds the process of a role; its output goes to logs/ROLE.log.
// stdout, when not nil, gets the standard output instead.
func command(dir, role string, args []string, stdout io.Writer) (*exec.Cmd, *os.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, fmt.Errorf("find own binary: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, logDir, role+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open log of %s: %w", role, err)
	}
	cmd := exec.Command(self, append([]string{"role", role, "--"}, args...)...)
	cmd.Dir = dir
	cmd.Env = environment(role)
	cmd.Stdout, cmd.Stderr = log, log
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.SysProcAttr = attributes()
	return cmd, log, nil
}

// apiServerGC lets the API server's heap grow to three times its live size between collections:
// a fifth less CPU at benchmark rates, for memory that a machine that runs
// benchmarks has.
const apiServerGC = "GOGC=200"

func environment(role string) []string {
	env := os.Environ()
	if _, chosen := os.LookupEnv("GOGC"); role == roles.APIServer && !chosen {
		env = append(env, apiServerGC)
	}
	return env
}
