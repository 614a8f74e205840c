// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"fmt"
	"syscall"
)

// attributes returns those of a role's process: Ctrl-C at the terminal is for the supervisor, which ends its children
// in order; and the kernel kills a child whose supervisor has died.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// FollowParent has nothing to do here: see attributes.
func FollowParent() {}

// shortName returns a name of a file in an open directory that is short wherever the directory is.
func shortName(_ string, descriptor uintptr, file string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", descriptor, file)
}
