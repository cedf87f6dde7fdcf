const bit<8> x = 1;
/* this goes on
const bit<8> y = 2;
