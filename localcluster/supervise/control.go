// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/kumiki-scheduler/kumiki/localcluster/roles"
)

// Verb is what a sub-command asks of a running cluster.
type Verb string

// The verbs.
const (
	// Kill ends the role's process with SIGKILL and leaves it dead.
	Kill Verb = "kill"
	// Stop freezes it with SIGSTOP: connections stay open and nothing answers.
	Stop Verb = "stop"
	// Cont lets a frozen process go on.
	Cont Verb = "cont"
	// Restart kills the process if there is one, starts it with the same ports
	// and data, and waits until it does its work.
	Restart Verb = "restart"
	// Status only reports.
	Status Verb = "status"
)

// request and reply are one JSON line each on the control socket.
type request struct {
	Verb Verb   `json:"verb"`
	Role string `json:"role,omitempty"`
}

// ChildStatus describes one child.
type ChildStatus struct {
	Role  string `json:"role"`
	PID   int    `json:"pid"`
	Phase Phase  `json:"phase"`
	// Exit says how the process ended, when it did.
	Exit string `json:"exit,omitempty"`
}

// Reply is what a running cluster answers.
type Reply struct {
	Error    string        `json:"error,omitempty"`
	DataDir  string        `json:"dataDir"`
	Server   string        `json:"server"`
	PID      int           `json:"pid"`
	Children []ChildStatus `json:"children"`
}

// ErrNoCluster says that no cluster runs in the data directory.
var ErrNoCluster = errors.New("no running cluster")

// Serve answers on the control socket until ctx ends. The socket is opened
// before Serve returns.
func (s *Supervisor) Serve(ctx context.Context) error {
	// One that a killed supervisor left; the lock shows that no process uses it.
	if err := os.Remove(s.dir.file(controlSock)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open control socket: %w", err)
	}
	listener, err := listenUnix(s.dir.path)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		listener.Close()
	}()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.answer(ctx, conn)
		}
	}()
	return nil
}

func (s *Supervisor) answer(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	var req request
	if err := json.NewDecoder(bufio.NewReader(conn)).Decode(&req); err != nil {
		return
	}
	reply := Reply{DataDir: s.dir.path, Server: s.dir.Server(), PID: os.Getpid()}
	if err := s.do(ctx, req); err != nil {
		reply.Error = err.Error()
	}
	reply.Children = s.status()
	// The other side may be gone; then no reader is left.
	_ = json.NewEncoder(conn).Encode(reply)
}

func (s *Supervisor) do(ctx context.Context, req request) error {
	if req.Verb == Status {
		return nil
	}
	if !roles.Known(req.Role) {
		return fmt.Errorf("%s %q: unknown role; roles are %s", req.Verb, req.Role, strings.Join(roles.All(), ", "))
	}
	s.say("%s %s", req.Verb, req.Role)
	switch req.Verb {
	case Kill:
		return s.kill(req.Role)
	case Stop:
		return s.signal(req.Role, syscall.SIGSTOP, Running, Stopped)
	case Cont:
		return s.signal(req.Role, syscall.SIGCONT, Stopped, Running)
	case Restart:
		return s.restart(ctx, req.Role)
	}
	return fmt.Errorf("unknown verb %q", req.Verb)
}

// kill returns when the process is gone.
func (s *Supervisor) kill(role string) error {
	s.mu.Lock()
	c := s.children[role]
	if c == nil || (c.phase != Running && c.phase != Stopped) {
		s.mu.Unlock()
		return fmt.Errorf("kill %s: it does not run", role)
	}
	c.phase = Killed
	err := c.cmd.Process.Kill()
	s.mu.Unlock()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", role, err)
	}
	<-c.ended
	return nil
}

func (s *Supervisor) signal(role string, sig syscall.Signal, from, to Phase) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.children[role]
	if c == nil || c.phase != from {
		return fmt.Errorf("signal %s: it is not %s", role, from)
	}
	if err := c.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("signal %s: %w", role, err)
	}
	c.phase = to
	return nil
}

func (s *Supervisor) restart(ctx context.Context, role string) error {
	if c := s.child(role); c != nil {
		if err := s.kill(role); err != nil {
			// It was dead already; wait until it is collected.
			<-c.ended
		}
	}
	if err := s.spawn(role); err != nil {
		return err
	}
	return s.waitReady(ctx, role)
}

func (s *Supervisor) status() []ChildStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []ChildStatus
	for _, role := range roles.All() {
		if c := s.children[role]; c != nil {
			out = append(out, ChildStatus{Role: role, PID: c.cmd.Process.Pid, Phase: c.phase, Exit: c.exit})
		}
	}
	return out
}

// Call asks the cluster in dataDir.
func Call(dataDir string, verb Verb, role string) (Reply, error) {
	conn, err := dialUnix(dataDir)
	if err != nil {
		return Reply{}, fmt.Errorf("%w in %s: %w", ErrNoCluster, dataDir, err)
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(request{Verb: verb, Role: role}); err != nil {
		return Reply{}, fmt.Errorf("%s %s: %w", verb, role, err)
	}
	var reply Reply
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		return Reply{}, fmt.Errorf("%s %s: %w", verb, role, err)
	}
	if reply.Error != "" {
		return reply, errors.New(reply.Error)
	}
	return reply, nil
}

// Find gives the data directory of the one running cluster whose directory is
// temporary; several or none are an error that names them.
func Find() (string, error) {
	candidates, _ := filepath.Glob(filepath.Join(os.TempDir(), tempPrefix+"*"))
	var running []string
	for _, dir := range candidates {
		if conn, err := dialUnix(dir); err == nil {
			conn.Close()
			running = append(running, dir)
		}
	}
	switch len(running) {
	case 0:
		return "", ErrNoCluster
	case 1:
		return running[0], nil
	}
	return "", fmt.Errorf("several clusters run; pick one with --data-dir: %s", strings.Join(running, ", "))
}
