// SPDX-License-Identifier: Apache-2.0

package testcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Role names a child process of the cluster.
type Role string

// The roles.
const (
	Etcd        Role = "etcd"
	APIServer   Role = "apiserver"
	Controllers Role = "controllers"
	Nodes       Role = "nodes"
)

// Options say what cluster to start. The zero value is ten nodes of the default
// shape, pods that start at once, and kubelet admission.
type Options struct {
	// Kubernetes is the release; empty means that of the environment (ReleaseEnv), or Matched.
	Kubernetes Release
	// BinaryDir is the directory of the program; empty means what Build finds.
	BinaryDir string
	// Nodes of the default shape; 0 means the program's default, -1 none.
	Nodes int
	// NodeSpec describes the nodes in YAML (the text, not a file) and replaces Nodes.
	NodeSpec string
	// DataDir keeps the cluster; empty means a temporary directory.
	DataDir string
	// PodStages is fast (also when empty), realistic or none.
	PodStages string
	// FeatureGates (A=true,B=false) and RuntimeConfig
	// (scheduling.k8s.io/v1beta1=true) of the control plane.
	FeatureGates  string
	RuntimeConfig string
	// Gangs serves native pod groups, with all that may stand in one. It is not combined with FeatureGates or
	// RuntimeConfig.
	Gangs bool
	// NoKubeletAdmission lets oversold pods run; NoHeartbeats saves the writes
	// of node leases.
	NoKubeletAdmission bool
	NoHeartbeats       bool
	// KubeconfigOut gets a copy of the admin kubeconfig while the cluster runs.
	KubeconfigOut string
	// Args are further flags of the program.
	Args []string
	// Progress gets lines for people about the build and the start; nil drops
	// them.
	Progress io.Writer
}

func (o Options) args(specFile string) []string {
	args := []string{"start"}
	add := func(flag, value string) {
		if value != "" {
			args = append(args, "--"+flag+"="+value)
		}
	}
	switch {
	case specFile != "":
		add("node-spec", specFile)
	case o.Nodes != 0:
		add("nodes", strconv.Itoa(max(o.Nodes, 0)))
	}
	// Given even when empty: the environment must not pick the directory.
	args = append(args, "--data-dir="+o.DataDir)
	add("pod-stages", o.PodStages)
	add("feature-gates", o.FeatureGates)
	add("runtime-config", o.RuntimeConfig)
	add("kubeconfig-out", o.KubeconfigOut)
	if o.NoKubeletAdmission {
		add("kubelet-admission", "false")
	}
	if o.NoHeartbeats {
		add("heartbeats", "false")
	}
	return append(args, o.Args...)
}

// Info is what the program prints when the cluster is ready.
type Info struct {
	// Kubeconfig may do everything. SchedulerKubeconfig is user
	// system:kube-scheduler with exactly that role. ViewerKubeconfig may read
	// everything but secrets.
	Kubeconfig          string `json:"kubeconfig"`
	SchedulerKubeconfig string `json:"schedulerKubeconfig"`
	ViewerKubeconfig    string `json:"viewerKubeconfig"`
	// Server is the URL of the API server; it stays the same over restarts.
	Server  string `json:"server"`
	DataDir string `json:"dataDir"`
	Nodes   int    `json:"nodes"`
	// StartupSeconds is the time from start to ready, without the build.
	StartupSeconds float64 `json:"startupSeconds"`
}

// Cluster is a running local cluster.
type Cluster struct {
	Info
	binary   string
	cmd      *exec.Cmd
	specFile string
	output   *lastLines
	// ended is closed when the program is gone; exit is valid then.
	ended chan struct{}
	exit  error
	close sync.Once
}

// Launch builds the program if needed, starts a cluster and waits until it is
// ready. The cluster runs until Close, until ctx ends, or until this process
// ends in whatever way.
func Launch(ctx context.Context, opts Options) (*Cluster, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	r, err := opts.Kubernetes.orDefault()
	if err != nil {
		return nil, err
	}
	if opts.Gangs {
		opts.FeatureGates, opts.RuntimeConfig = r.GangGates(), "scheduling.k8s.io/"+r.GangVersion()+"=true"
	}
	binary := filepath.Join(opts.BinaryDir, r.binary())
	if opts.BinaryDir == "" {
		binary, err = Build(ctx, r, opts.Progress)
	} else {
		_, err = os.Stat(binary)
	}
	if err != nil {
		return nil, err
	}
	c := &Cluster{binary: binary, output: &lastLines{}, ended: make(chan struct{})}
	if opts.NodeSpec != "" {
		if c.specFile, err = writeSpec(opts.NodeSpec); err != nil {
			return nil, err
		}
	}
	stdout, err := c.start(opts)
	if err != nil {
		c.removeSpec()
		return nil, err
	}
	err = c.waitReady(ctx, stdout)
	// The program has its own copy by now.
	c.removeSpec()
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	go func() {
		<-c.ended
		stop()
	}()
	return c, nil
}

func writeSpec(text string) (string, error) {
	f, err := os.CreateTemp("", "kumiki-node-spec-*.yaml")
	if err != nil {
		return "", fmt.Errorf("write node spec: %w", err)
	}
	if _, err := f.WriteString(text); err != nil {
		return "", errors.Join(fmt.Errorf("write node spec: %w", err), f.Close(), os.Remove(f.Name()))
	}
	if err := f.Close(); err != nil {
		return "", fmt.Errorf("write node spec: %w", err)
	}
	return f.Name(), nil
}

func (c *Cluster) removeSpec() {
	if c.specFile != "" {
		_ = os.Remove(c.specFile)
	}
}

// spawn passes work to Spawn's thread.
var spawn = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// Spawn starts a process from one OS thread that lives as long as this
// process: the signal at the parent's death (Pdeathsig) comes when the thread
// that forked ends.
func Spawn(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	spawn() <- func() { started <- cmd.Start() }
	return <-started
}

func (c *Cluster) start(opts Options) (io.Reader, error) {
	c.cmd = exec.Command(c.binary, opts.args(c.specFile)...)
	c.cmd.SysProcAttr = ChildAttributes(syscall.SIGTERM) // not SIGKILL, so that the program still cleans up
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", BinaryName, err)
	}
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", BinaryName, err)
	}
	if err := Spawn(c.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", BinaryName, err)
	}
	go func() {
		// Wait closes the pipe, so all of it must have been read before.
		c.output.copyLines(stderr, opts.Progress)
		c.exit = c.cmd.Wait()
		close(c.ended)
	}()
	return stdout, nil
}

func (c *Cluster) waitReady(ctx context.Context, stdout io.Reader) error {
	line := make(chan []byte, 1)
	go func() {
		scan := bufio.NewScanner(stdout)
		if scan.Scan() {
			line <- scan.Bytes()
		}
	}()
	select {
	case raw := <-line:
		if err := json.Unmarshal(raw, &c.Info); err != nil {
			return fmt.Errorf("read the ready line %q: %w", raw, err)
		}
		return nil
	case <-c.ended:
		return fmt.Errorf("%s ended before it was ready: %w\n%s", BinaryName, c.exit, c.output)
	case <-ctx.Done():
		return fmt.Errorf("wait for %s: %w\n%s", BinaryName, ctx.Err(), c.output)
	}
}

// Ended is closed when the cluster's program is gone, wanted or not.
func (c *Cluster) Ended() <-chan struct{} { return c.ended }

// Output returns the end of the program's output.
func (c *Cluster) Output() string { return c.output.String() }

// Logs is the directory with one log file per role.
func (c *Cluster) Logs() string { return filepath.Join(c.DataDir, "logs") }

// closeGrace is how long the program may take to end its children.
const closeGrace = 20 * time.Second

// Close ends the cluster and waits until it is gone. It may be called again.
func (c *Cluster) Close() error {
	var err error
	c.close.Do(func() {
		select {
		case <-c.ended:
		default:
			_ = c.cmd.Process.Signal(syscall.SIGTERM)
		}
		select {
		case <-c.ended:
		case <-time.After(closeGrace):
			err = fmt.Errorf("close cluster: %s did not end within %s of SIGTERM and was killed", BinaryName, closeGrace)
			_ = c.cmd.Process.Kill()
			<-c.ended
		}
		if err == nil && c.exit != nil {
			err = fmt.Errorf("close cluster: %w\n%s", c.exit, c.output)
		}
	})
	return err
}

// Kill ends the role's process with SIGKILL; it stays dead until Restart.
func (c *Cluster) Kill(role Role) error { return c.control("kill", role) }

// Stop freezes the role's process: connections stay open, nothing answers.
func (c *Cluster) Stop(role Role) error { return c.control("stop", role) }

// Cont lets a frozen process go on.
func (c *Cluster) Cont(role Role) error { return c.control("cont", role) }

// Restart kills the role's process if it lives, starts it with the same ports
// and data, and returns when it works.
func (c *Cluster) Restart(role Role) error { return c.control("restart", role) }

func (c *Cluster) control(verb string, role Role) error {
	out, err := exec.Command(c.binary, verb, string(role), "--data-dir="+c.DataDir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", verb, role, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// ProcessStatus describes the process of one role.
type ProcessStatus struct {
	Role  Role   `json:"role"`
	PID   int    `json:"pid"`
	Phase string `json:"phase"`
	Exit  string `json:"exit"`
}

// Status lists the processes of the cluster in start order.
func (c *Cluster) Status() ([]ProcessStatus, error) {
	out, err := exec.Command(c.binary, "status", "-o", "json", "--data-dir="+c.DataDir).Output()
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	var reply struct {
		Children []ProcessStatus `json:"children"`
	}
	if err := json.Unmarshal(out, &reply); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return reply.Children, nil
}
