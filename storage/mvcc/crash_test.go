package mvcc_test

func runChild() bool { return false }
