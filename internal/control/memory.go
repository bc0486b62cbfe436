package control

import (
	"bufio"
	"os"
	"strconv"
	"strings"
)

// OwnMemory is this process's memory, nil where /proc does not tell.
func OwnMemory() *Memory {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return nil
	}
	defer file.Close()
	memory := &Memory{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		kibibytes, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "VmRSS:":
			memory.Resident = kibibytes << 10
		case "RssAnon:":
			memory.Anonymous = kibibytes << 10
		}
	}
	return memory
}
