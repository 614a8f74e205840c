// SPDX-License-Identifier: Apache-2.0

package kubeadm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// container is one process of an image, as a container runtime starts it.
type container struct {
	// Rootfs is the root file system. It belongs to this container alone.
	Rootfs string
	// Command is looked up in PATH of Env inside of Rootfs.
	Command []string
	Env     []string
	// User is uid or uid:gid, as in an image's configuration; empty means root.
	User string
	// Mounts: path in the container -> path on the host, of a file or directory.
	Mounts map[string]string
	// ReadOnly is readOnlyRootFilesystem of a pod.
	ReadOnly bool
}

// isolation is how much of a container this machine permits to build.
type isolation string

const (
	// asRoot has namespaces for mounts and processes and can change the user.
	asRoot isolation = "root"
	// inUserNamespace has the same namespaces, and is root only inside of them.
	inUserNamespace isolation = "user namespace"
	// plain has none: the process runs on the host, and paths in its arguments are rewritten.
	plain isolation = "none"
)

// containerEnv makes this test binary the first process of a container. Its value is a container in JSON.
const containerEnv = "KUMIKI_TEST_CONTAINER"

func TestMain(m *testing.M) {
	if spec := os.Getenv(containerEnv); spec != "" {
		fmt.Fprintln(os.Stderr, "starting a container:", enter(spec))
		os.Exit(125) // as docker run does
	}
	var err error
	if scratch, err = os.MkdirTemp("", "kumiki-images-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// permitted returns the most complete isolation that this machine permits.
var permitted = sync.OnceValue(func() isolation {
	for _, i := range []isolation{asRoot, inUserNamespace} {
		c := &exec.Cmd{Path: self(), Args: []string{"probe"}, Env: []string{containerEnv + "={}"}, SysProcAttr: i.attributes()}
		out, _ := c.CombinedOutput()
		if bytes.Contains(out, []byte(errNoRootfs.Error())) {
			return i
		}
	}
	return plain
})

// self returns the path of this test binary.
func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// attributes returns the namespaces of a container's first process.
func (i isolation) attributes() *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if i != plain {
		a.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID
	}
	if i == inUserNamespace {
		a.Cloneflags |= syscall.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	return a
}

// cmd returns the container's process, not started.
func (c container) cmd(i isolation) (*exec.Cmd, error) {
	if i != plain {
		spec, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		return &exec.Cmd{Path: self(), Args: []string{"container"}, Env: []string{containerEnv + "=" + string(spec)},
			SysProcAttr: i.attributes()}, nil
	}
	program, err := lookup(c.Rootfs, c.Env, c.Command[0])
	if err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(filepath.Join(c.Rootfs, program))
	if err != nil {
		return nil, err
	}
	args := slices.Clone(c.Command)
	for inside, outside := range c.Mounts { // order: a path is in one mount only
		for n := range args[1:] {
			args[n+1] = strings.ReplaceAll(args[n+1], inside, outside)
		}
	}
	attributes := i.attributes()
	uid, gid, err := c.user()
	if err != nil {
		return nil, err
	}
	if uid != 0 { // fails unless this process is root, as it must: the container's user is another one
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return &exec.Cmd{Path: path, Args: args, Env: c.Env, Dir: c.Rootfs, SysProcAttr: attributes}, nil
}

var errNoRootfs = errors.New("the container has no root file system")

// enter makes this process the container's: it builds the file system, changes root and user, and executes the command.
// It returns only if that fails. This process is the first of new namespaces, so no other process sees the mounts.
func enter(spec string) error {
	var c container
	if err := json.Unmarshal([]byte(spec), &c); err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("detaching mounts: %w", err)
	}
	if c.Rootfs == "" {
		return errNoRootfs
	}
	if err := bind(c.Rootfs, c.Rootfs); err != nil {
		return err
	}
	for inside, outside := range c.Mounts { // order: a path is in one mount only
		if err := mountInto(c.Rootfs, inside, outside); err != nil {
			return err
		}
	}
	if c.ReadOnly {
		if err := readOnly(c.Rootfs); err != nil {
			return err
		}
	}
	uid, gid, err := c.user()
	if err != nil {
		return err
	}
	program, err := lookup(c.Rootfs, c.Env, c.Command[0])
	if err != nil {
		return err
	}
	if err := errors.Join(syscall.Chroot(c.Rootfs), os.Chdir("/")); err != nil {
		return err
	}
	if uid != 0 || gid != 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
			return fmt.Errorf("becoming user %s: %w", c.User, err)
		}
	}
	return fmt.Errorf("executing %s: %w", program, syscall.Exec(program, c.Command, c.Env))
}

func bind(from, to string) error {
	if err := syscall.Mount(from, to, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", from, to, err)
	}
	return nil
}

// mountInto makes the place for a mount, as container runtimes do, and mounts the host's path read-only.
func mountInto(rootfs, inside, outside string) error {
	to := filepath.Join(rootfs, inside)
	info, err := os.Stat(outside)
	if err != nil {
		return err
	}
	parent := filepath.Dir(to)
	if info.IsDir() {
		parent = to
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	if !info.IsDir() {
		if err := os.WriteFile(to, nil, 0o644); err != nil {
			return err
		}
	}
	if err := bind(outside, to); err != nil {
		return err
	}
	return readOnly(to)
}

// readOnly makes a mount read-only and keeps its other flags, which a user namespace may not drop.
func readOnly(mount string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(mount, &s); err != nil {
		return err
	}
	kept := uintptr(s.Flags) & (syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_NOATIME | syscall.MS_NODIRATIME | syscall.MS_RELATIME)
	if err := syscall.Mount("", mount, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY|kept, ""); err != nil {
		return fmt.Errorf("making %s read-only: %w", mount, err)
	}
	return nil
}

// user reads User. A name is an error: the kubelet cannot tell whether it is root.
func (c container) user() (uid, gid int, err error) {
	if c.User == "" {
		return 0, 0, nil
	}
	u, g, _ := strings.Cut(c.User, ":")
	if uid, err = strconv.Atoi(u); err == nil && g != "" {
		gid, err = strconv.Atoi(g)
	}
	return uid, gid, err
}

// lookup finds a command in a root file system by PATH of env. The result is a path inside of it.
func lookup(rootfs string, env []string, command string) (string, error) {
	if strings.Contains(command, "/") {
		return command, nil
	}
	for _, e := range env {
		value, is := strings.CutPrefix(e, "PATH=")
		if !is {
			continue
		}
		for _, dir := range filepath.SplitList(value) {
			// Links in images are relative, so they can be followed from outside.
			if info, err := os.Stat(filepath.Join(rootfs, dir, command)); err == nil && info.Mode()&0o111 != 0 {
				return filepath.Join(dir, command), nil
			}
		}
	}
	return "", fmt.Errorf("%q: %w in PATH of the image", command, exec.ErrNotFound)
}

// copyOf makes a root file system for one container from an unpacked image. Files are hard links.
func copyOf(t *testing.T, rootfs string) string {
	t.Helper()
	// The directories of testing.T are closed to other users.
	dir, err := os.MkdirTemp("", "kumiki-rootfs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	err = filepath.WalkDir(rootfs, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, rootfs))
		switch {
		case path == rootfs:
			return os.Chmod(dir, 0o755)
		case d.IsDir():
			return os.Mkdir(to, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			return errors.Join(err, os.Symlink(target, to))
		}
		return os.Link(path, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// process is a running container.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	out  output
	gone chan struct{} // closed when it has ended; err is valid then
	err  error
}

// output is what a process prints. It is safe for concurrent use.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts a container, which ends with the test.
func start(t *testing.T, c container, i isolation) *process {
	t.Helper()
	cmd, err := c.cmd(i)
	if err != nil {
		t.Fatalf("container %v: %v", c.Command, err)
	}
	p := &process{T: t, cmd: cmd, gone: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = &p.out, &p.out
	if err := testcluster.Spawn(cmd); err != nil {
		t.Fatalf("starting container %v: %v", c.Command, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.gone)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.gone
		if t.Failed() {
			t.Logf("%v said:\n%s", c.Command, p.out.String())
		}
	})
	return p
}

// end stops the container as a kubelet does and returns its exit code.
func (p *process) end() int {
	p.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.Errorf("SIGTERM: %v", err)
	}
	return p.wait()
}

// wait returns the exit code, and fails the test if the process does not end by itself.
func (p *process) wait() int {
	p.Helper()
	if !within(p.T, func() bool {
		select {
		case <-p.gone:
			return true
		default:
			return false
		}
	}) {
		p.Fatalf("%v does not end", p.cmd.Args)
	}
	return p.cmd.ProcessState.ExitCode()
}
