touch prepared.txt
rm -f setup.sh
