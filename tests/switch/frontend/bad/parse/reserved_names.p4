control Other() {
    action default() { }
    apply { }
}
